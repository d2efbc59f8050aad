package app_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// call is one request as RBAC sees it.
type call struct{ verb, group, resource string }

func (c call) String() string {
	return strings.TrimSpace(c.verb + " " + strings.TrimPrefix(c.resource+"."+c.group, "."))
}

// calls counts the operator's requests to the API server.
type calls struct {
	mu      sync.Mutex
	count   map[call]int
	refused map[call]int
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// record counts what goes through a transport.
func (c *calls) record(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if made, ok := callOf(r); ok {
			c.add(made, err == nil && answer.StatusCode == http.StatusForbidden)
		}
		return answer, err
	})
}

func (c *calls) add(made call, refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == nil {
		c.count, c.refused = map[call]int{}, map[call]int{}
	}
	c.count[made]++
	if refused {
		c.refused[made]++
	}
}

func (c *calls) snapshot() map[call]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.count)
}

// callOf tells what RBAC takes a request for. Discovery is none of its rules' business here.
func callOf(r *http.Request) (call, bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var made call
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		made.group, parts = parts[1], parts[3:]
	default:
		return call{}, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	made.resource = parts[0]
	if len(parts) > 2 {
		made.resource += "/" + parts[2]
	}
	made.verb = verbOf(r, len(parts) > 1)
	return made, true
}

func verbOf(r *http.Request, named bool) string {
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		return "watch"
	case r.Method == http.MethodGet && !named:
		return "list"
	case r.Method == http.MethodGet:
		return "get"
	case r.Method == http.MethodPost:
		return "create"
	case r.Method == http.MethodPut:
		return "update"
	}
	return strings.ToLower(r.Method)
}

// exempt are grants that no request shows.
var exempt = map[call]string{
	{"update", "storage.example.com", "pvcbackups/finalizers"}:  "some clusters ask for it where an owner reference is set",
	{"update", "storage.example.com", "pvcrestores/finalizers"}: "some clusters ask for it where an owner reference is set",
	{"patch", "", "persistentvolumes"}:                          "the volume of a class that retains is made to go with its claim",
	{"patch", "events.k8s.io", "events"}:                        "an event that comes again within six minutes is counted up",
}

// isExempt reports whether a grant need not be seen in use. A cache lists only where the API server cannot stream what
// is there, so list belongs to watch.
func (c *calls) isExempt(grant call) bool {
	watch := call{"watch", grant.group, grant.resource}
	return exempt[grant] != "" || grant.verb == "list" && c.count[watch] > 0
}

// grantedIsUsed compares what was asked for with what the role in a file grants: it must be the same, but for what is exempt.
func grantedIsUsed(c *calls, file string) error {
	granted, err := grants(file)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var problems []error
	for _, made := range sorted(c.count) {
		if !granted[made] {
			problems = append(problems, fmt.Errorf("RBAC: %q was asked for and is not granted", made))
		}
	}
	for _, made := range sorted(c.refused) {
		problems = append(problems, fmt.Errorf("RBAC: %q was refused %d times", made, c.refused[made]))
	}
	for _, grant := range sorted(granted) {
		if c.count[grant] == 0 && !c.isExempt(grant) {
			problems = append(problems, fmt.Errorf("RBAC: %q is granted and was never asked for", grant))
		}
		if grant.resource == "secrets" && grant.verb != "create" {
			problems = append(problems, fmt.Errorf("RBAC: %q is granted: on Secrets only create may be", grant))
		}
	}
	return errors.Join(problems...)
}

func sorted[V any](m map[call]V) []call {
	return slices.SortedFunc(maps.Keys(m), func(a, b call) int { return strings.Compare(a.resource+a.verb, b.resource+b.verb) })
}

// grants reads the rules of the roles in a file.
func grants(file string) (map[call]bool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	granted := map[call]bool{}
	for document := range bytes.SplitSeq(text, []byte("\n---")) {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal(document, &role); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		addRules(granted, role.Rules)
	}
	return granted, nil
}

func addRules(granted map[call]bool, rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					granted[call{verb, group, resource}] = true
				}
			}
		}
	}
}
