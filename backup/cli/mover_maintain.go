package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/maintain"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/schedule/keep"
)

// maintain forgets by the keep rules and prunes.
func (m *mover) maintain(ctx context.Context, store *blobstore.Store) error {
	request, identity := m.request.Maintain, m.request.Identity
	if identity.Host == "" || identity.Path == "" {
		return because(contract.ReasonInvalidRequest, errors.New("the request does not say by host and path whose snapshots are meant"))
	}
	rules, err := rulesOf(request.Keep)
	if err != nil {
		return because(contract.ReasonInvalidRequest, err)
	}
	location, err := time.LoadLocation(request.TimeZone)
	if err != nil {
		return because(contract.ReasonInvalidRequest, err)
	}
	err = m.withLock(ctx, store, repo.LockOptions{Exclusive: true}, func(ctx context.Context, s *session) error {
		report, err := maintain.Forget(ctx, s.repository, maintain.ForgetOptions{
			Rules: rules, Location: location, Match: mine(identity.Host, identity.Path),
		})
		m.result.Kept, m.result.Removed = report.Kept, report.Removed
		if err != nil {
			return err
		}
		m.result.Freed, err = m.prune(ctx, s)
		return err
	})
	return cannotDelete(err)
}

func (m *mover) prune(ctx context.Context, s *session) (int64, error) {
	done, err := m.tool.prune(ctx, s, maintain.PruneOptions{Now: m.Now()}, false)
	if done == nil {
		return 0, err
	}
	return done.Freed, err
}

// cannotDelete tells credentials that may not delete from those that may not do anything.
func cannotDelete(err error) error {
	var failed *blobstore.Error
	if errors.Is(err, blobstore.ErrPermission) && errors.As(err, &failed) && failed.Op == "delete" {
		return because(contract.ReasonKeyCannotDelete, fmt.Errorf(
			"%w: name credentials that may, in storage.maintenanceCredentialsSecretRef", err))
	}
	return err
}

// delete forgets one owner's snapshots, prunes, and removes the repository when nobody else's snapshots remain.
func (m *mover) delete(ctx context.Context, store *blobstore.Store) error {
	remaining := 0
	tag := contract.TagOwner + "=" + m.request.Delete.OwnerUID
	err := m.withLock(ctx, store, repo.LockOptions{Exclusive: true}, func(ctx context.Context, s *session) (err error) {
		m.result.Removed, remaining, err = maintain.ForgetAll(ctx, s.repository, func(s *repo.Snapshot) bool { return hasTags(s.Tags, []string{tag}) })
		if err != nil {
			return err
		}
		m.result.Kept = remaining
		if remaining == 0 {
			return maintain.RemoveRepository(ctx, s.repository, store)
		}
		m.result.Freed, err = m.prune(ctx, s)
		return err
	})
	if errors.Is(err, repo.ErrAbsent) || errors.Is(err, repo.ErrHalfInitialised) {
		// Nothing was ever begun, or an earlier attempt came this far.
		return cannotDelete(maintain.RemoveRest(ctx, store, m.Now()))
	}
	return cannotDelete(err)
}

func rulesOf(k contract.Keep) (keep.Rules, error) {
	rules := keep.Rules{Last: k.Last, Hourly: k.Hourly, Daily: k.Daily, Weekly: k.Weekly, Monthly: k.Monthly, Yearly: k.Yearly}
	if k.Within == "" {
		return rules, nil
	}
	within, err := keep.ParseSpan(k.Within)
	rules.Within = within
	return rules, err
}
