package reconcilekit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/pvcbackup/reconcilekit"
)

// foreign is an error of somebody who does not know reconcilekit.
type foreign struct {
	terminal bool
	reason   string
	after    time.Duration
	err      error
}

func (f foreign) Error() string             { return "foreign" }
func (f foreign) Unwrap() error             { return f.err }
func (f foreign) Terminal() bool            { return f.terminal }
func (f foreign) Reason() string            { return f.reason }
func (f foreign) RetryAfter() time.Duration { return f.after }

var jobs = schema.GroupResource{Group: "batch", Resource: "jobs"}

func invalid() error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "j", field.ErrorList{field.Required(field.NewPath("spec"), "")})
}

func notServed() error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", jobs, "j", "404 page not found", 0, true)
}

func TestClassify(t *testing.T) {
	conflict := apierrors.NewConflict(jobs, "j", errBoom)
	waiting := reconcilekit.Waiting("SnapshotPending", time.Minute, errBoom)
	terminal := reconcilekit.Terminal("BadSchedule", errBoom)
	terminating := apierrors.NewForbidden(jobs, "j", errBoom)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	wrap := func(err error) error { return fmt.Errorf("doing: %w", err) }

	type want struct {
		class  reconcilekit.Class
		reason string
		after  time.Duration
	}
	for name, tc := range map[string]struct {
		err error
		want
	}{
		"nil":       {nil, want{reconcilekit.ClassNone, "", 0}},
		"unknown":   {errBoom, want{reconcilekit.ClassTransient, "Transient", 0}},
		"waiting":   {wrap(waiting), want{reconcilekit.ClassWaiting, "SnapshotPending", time.Minute}},
		"terminal":  {wrap(wrap(terminal)), want{reconcilekit.ClassTerminal, "BadSchedule", 0}},
		"transient": {wrap(reconcilekit.Transient("StoreDown", nil)), want{reconcilekit.ClassTransient, "StoreDown", 0}},
		"waiting for no time waits the default": {
			reconcilekit.Waiting("Any", 0, nil), want{reconcilekit.ClassWaiting, "Any", reconcilekit.DefaultWait}},
		"the outer opinion counts":     {reconcilekit.Terminal("GaveUp", conflict), want{reconcilekit.ClassTerminal, "GaveUp", 0}},
		"the outer opinion counts too": {reconcilekit.Transient("", terminal), want{reconcilekit.ClassTransient, "BadSchedule", 0}},
		"cancelled":                    {wrap(context.Canceled), want{reconcilekit.ClassStopping, "Stopping", 0}},
		"deadline":                     {wrap(context.DeadlineExceeded), want{reconcilekit.ClassTransient, "Timeout", 0}},
		"controller-runtime terminal":  {wrap(reconcile.TerminalError(terminal)), want{reconcilekit.ClassTerminal, "BadSchedule", 0}},
		"controller-runtime, nothing":  {reconcile.TerminalError(nil), want{reconcilekit.ClassTerminal, "Terminal", 0}},
		"an unfit reason is made fit":  {reconcilekit.Terminal("9 bad reason!", nil), want{reconcilekit.ClassTerminal, "Badreason", 0}},
		"a reason of nothing":          {reconcilekit.Terminal("!?", nil), want{reconcilekit.ClassTerminal, "Terminal", 0}},

		"join: conflict before all": {errors.Join(terminal, waiting, errBoom, conflict), want{reconcilekit.ClassConflict, "Conflict", 0}},
		"join: transient before terminal": {
			errors.Join(terminal, reconcilekit.Transient("StoreDown", nil)), want{reconcilekit.ClassTransient, "StoreDown", 0}},
		"join: transient before controller-runtime's": {
			errors.Join(reconcile.TerminalError(errBoom), errBoom), want{reconcilekit.ClassTransient, "Transient", 0}},
		"join: waiting before terminal": {wrap(errors.Join(terminal, waiting)), want{reconcilekit.ClassWaiting, "SnapshotPending", time.Minute}},
		"join: the shorter wait": {
			errors.Join(waiting, reconcilekit.Waiting("Soon", time.Second, nil)), want{reconcilekit.ClassWaiting, "Soon", time.Second}},
		"join: terminal before the siblings it cancelled": {
			errors.Join(context.Canceled, terminal), want{reconcilekit.ClassTerminal, "BadSchedule", 0}},
		"join: of terminals": {errors.Join(reconcile.TerminalError(nil), terminal), want{reconcilekit.ClassTerminal, "BadSchedule", 0}},
		"aggregate": {
			kerrors.NewAggregate([]error{reconcile.TerminalError(errBoom), errBoom}), want{reconcilekit.ClassTransient, "Transient", 0}},
		"aggregate of terminals": {
			wrap(kerrors.NewAggregate([]error{terminal, terminal})), want{reconcilekit.ClassTerminal, "BadSchedule", 0}},

		"foreign terminal": {wrap(foreign{terminal: true, reason: "KeyLost"}), want{reconcilekit.ClassTerminal, "KeyLost", 0}},
		"foreign waiting":  {foreign{reason: "Busy", after: time.Hour}, want{reconcilekit.ClassWaiting, "Busy", time.Hour}},
		"foreign reason":   {foreign{reason: "Odd", err: conflict}, want{reconcilekit.ClassConflict, "Odd", 0}},
		"foreign that says it is not terminal": {
			foreign{reason: "Odd", err: terminal}, want{reconcilekit.ClassTransient, "Odd", 0}},
		"foreign cancelled": {foreign{err: context.Canceled}, want{reconcilekit.ClassStopping, "Stopping", 0}},

		"409 conflict":        {wrap(conflict), want{reconcilekit.ClassConflict, "Conflict", 0}},
		"409 already exists":  {apierrors.NewAlreadyExists(jobs, "j"), want{reconcilekit.ClassTransient, "AlreadyExists", 0}},
		"404":                 {apierrors.NewNotFound(jobs, "j"), want{reconcilekit.ClassTransient, "NotFound", 0}},
		"404 not served":      {wrap(notServed()), want{reconcilekit.ClassWaiting, "APINotServed", time.Minute}},
		"422":                 {wrap(invalid()), want{reconcilekit.ClassTerminal, "Invalid", 0}},
		"400":                 {apierrors.NewBadRequest("no"), want{reconcilekit.ClassTerminal, "BadRequest", 0}},
		"413":                 {apierrors.NewRequestEntityTooLargeError("no"), want{reconcilekit.ClassTerminal, "RequestEntityTooLarge", 0}},
		"403":                 {apierrors.NewForbidden(jobs, "j", errBoom), want{reconcilekit.ClassTransient, "Forbidden", 0}},
		"403 terminating":     {wrap(terminating), want{reconcilekit.ClassTerminal, "NamespaceTerminating", 0}},
		"401":                 {apierrors.NewUnauthorized("no"), want{reconcilekit.ClassTransient, "Unauthorized", 0}},
		"429":                 {apierrors.NewTooManyRequests("later", 7), want{reconcilekit.ClassWaiting, "TooManyRequests", 7 * time.Second}},
		"429 without a delay": {apierrors.NewTooManyRequestsError("later"), want{reconcilekit.ClassWaiting, "TooManyRequests", time.Second}},
		"500":                 {apierrors.NewInternalError(errBoom), want{reconcilekit.ClassTransient, "InternalError", 0}},
		"503":                 {apierrors.NewServiceUnavailable("no"), want{reconcilekit.ClassTransient, "ServiceUnavailable", 0}},
		"504":                 {apierrors.NewTimeoutError("slow", 1), want{reconcilekit.ClassTransient, "Timeout", 0}},
		"server timeout":      {apierrors.NewServerTimeout(jobs, "get", 1), want{reconcilekit.ClassTransient, "ServerTimeout", 0}},
		"no such kind":        {wrap(&meta.NoKindMatchError{}), want{reconcilekit.ClassWaiting, "APINotServed", time.Minute}},
		"no such resource":    {&meta.NoResourceMatchError{}, want{reconcilekit.ClassWaiting, "APINotServed", time.Minute}},
		"discovery: absent": {
			&apiutil.ErrResourceDiscoveryFailed{{Group: "batch"}: apierrors.NewNotFound(jobs, "")}, want{reconcilekit.ClassWaiting, "APINotServed", time.Minute}},
		"discovery: broken": {
			&apiutil.ErrResourceDiscoveryFailed{{Group: "batch"}: errBoom}, want{reconcilekit.ClassTransient, "Transient", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			got := want{reconcilekit.Classify(tc.err), reconcilekit.Reason(tc.err), reconcilekit.RetryAfter(tc.err)}
			require.Empty(t, cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})))
		})
	}
}

func TestConstructorsKeepTheErrorThatTheyWrap(t *testing.T) {
	for _, err := range []error{
		reconcilekit.Waiting("A", 0, errBoom), reconcilekit.Terminal("A", errBoom), reconcilekit.Transient("A", errBoom),
	} {
		require.ErrorIs(t, err, errBoom)
		require.Equal(t, "boom", err.Error())
	}
	require.Equal(t, "A", reconcilekit.Terminal("A", nil).Error())
}

func TestIsGoneIsNeverTrueForNotServedOrDoubt(t *testing.T) {
	gone := apierrors.NewNotFound(jobs, "j")
	for name, tc := range map[string]struct {
		err             error
		gone, notServed bool
	}{
		"nil":             {nil, false, false},
		"not found":       {fmt.Errorf("x: %w", gone), true, false},
		"both gone":       {errors.Join(gone, gone), true, false},
		"gone and more":   {errors.Join(gone, errBoom), false, false},
		"not served":      {fmt.Errorf("x: %w", notServed()), false, true},
		"gone, other not": {errors.Join(gone, notServed()), false, true},
		"no match":        {&meta.NoKindMatchError{}, false, true},
		"discovery": {&apiutil.ErrResourceDiscoveryFailed{
			{Group: "batch"}: gone}, false, true},
		"other": {errBoom, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.gone, reconcilekit.IsGone(tc.err))
			require.Equal(t, tc.notServed, reconcilekit.IsNotServed(tc.err))
		})
	}
}

func TestClassNames(t *testing.T) {
	require.Equal(t, "None", reconcilekit.ClassNone.String())
	require.Equal(t, "Class(99)", reconcilekit.Class(99).String())
}
