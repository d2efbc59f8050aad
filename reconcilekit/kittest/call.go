package kittest

import (
	"strings"
)

// Call is one call of a client, as role-based access control sees it.
type Call struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection.
	Verb string
	// Group and Resource are as in "batch" and "jobs"; the core group is "".
	Group, Resource string
	// Subresource is as in "status"; empty for the object itself.
	Subresource string
	// Kind is the kind of the object, never of a list.
	Kind string
	// Namespace and Name of the object; Name is empty for lists and generated names.
	Namespace, Name string
}

// IsWrite tells whether the call can change anything.
func (c Call) IsWrite() bool {
	switch c.Verb {
	case "get", "list", "watch":
		return false
	default:
		return true
	}
}

// String returns the call as in "patch widgets/status ns/name".
func (c Call) String() string {
	text := c.Verb + " " + c.Resource
	if c.Subresource != "" {
		text += "/" + c.Subresource
	}
	if c.Namespace != "" && c.Name != "" {
		return text + " " + c.Namespace + "/" + c.Name
	}
	return strings.TrimSpace(text + " " + c.Namespace + c.Name)
}
