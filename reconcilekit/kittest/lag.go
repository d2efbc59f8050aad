package kittest

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lag hides the last writes from reads. It remembers what every object was
// before each write. A nil lag hides nothing. Writes of other clients, applies
// and collection deletes are never hidden.
type lag struct {
	base   client.WithWatch
	writes int // how many to hide

	mu      sync.Mutex
	clock   int // writes so far
	history map[objectID][]version
}

type objectID struct {
	schema.GroupVersionKind
	client.ObjectKey
}

// version is what an object was before a write; nil: it was not there.
type version struct {
	write  int
	before *unstructured.Unstructured
}

func newLag(base client.WithWatch, writes int) *lag {
	return &lag{base: base, writes: writes, history: map[objectID][]version{}}
}

// around makes a write and remembers what obj was before it.
func (l *lag) around(ctx context.Context, obj client.Object, write func() error) error {
	if l == nil {
		return write()
	}
	gvk, err := l.base.GroupVersionKindFor(obj)
	if err != nil {
		return write()
	}
	before, err := l.live(ctx, gvk, client.ObjectKeyFromObject(obj))
	if err != nil {
		return fmt.Errorf("reading what is about to be written: %w", err)
	}
	if err := write(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock++
	id := objectID{gvk, client.ObjectKeyFromObject(obj)} // a generated name is known by now
	l.history[id] = append(l.history[id], version{write: l.clock, before: before})
	return nil
}

func (l *lag) live(ctx context.Context, gvk schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	if key.Name == "" {
		return nil, nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	err := l.base.Get(ctx, key, u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return u, err
}

// seen returns the version of an object that reads still see, if it is not the
// present one.
func (l *lag) seen(id objectID) (v version, old bool) {
	for _, v := range l.history[id] {
		if v.write > l.clock-l.writes {
			return v, true
		}
	}
	return version{}, false
}

func (l *lag) get(key client.ObjectKey, obj client.Object, live func() error) error {
	if l == nil {
		return live()
	}
	gvk, err := l.base.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	l.mu.Lock()
	v, old := l.seen(objectID{gvk, key})
	l.mu.Unlock()
	switch {
	case !old:
		return live()
	case v.before == nil:
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		return apierrors.NewNotFound(plural.GroupResource(), key.Name)
	default:
		return fill(obj, v.before)
	}
}

// list puts old versions in the place of the present ones.
func (l *lag) list(list client.ObjectList, options *client.ListOptions) error {
	if l == nil {
		return nil
	}
	gvk, err := l.base.GroupVersionKindFor(list)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var kept []runtime.Object
	for _, item := range items {
		if _, old := l.seen(objectID{gvk, client.ObjectKeyFromObject(item.(client.Object))}); !old {
			kept = append(kept, item)
		}
	}
	for id := range l.history {
		v, old := l.seen(id)
		if !old || id.GroupVersionKind != gvk || v.before == nil || !selected(v.before, options) {
			continue
		}
		item, err := l.newItem(list, gvk)
		if err != nil {
			return err
		}
		if err := fill(item, v.before); err != nil {
			return err
		}
		kept = append(kept, item)
	}
	return meta.SetList(list, kept)
}

// catchUp forgets what was hidden.
func (l *lag) catchUp() (hidden bool) {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.history {
		_, old := l.seen(id)
		hidden = hidden || old
	}
	l.history = map[objectID][]version{}
	return hidden
}

func (l *lag) newItem(list client.ObjectList, gvk schema.GroupVersionKind) (client.Object, error) {
	switch list.(type) {
	case *unstructured.UnstructuredList:
		return &unstructured.Unstructured{}, nil
	case *metav1.PartialObjectMetadataList:
		return &metav1.PartialObjectMetadata{}, nil
	}
	item, err := l.base.Scheme().New(gvk)
	if err != nil {
		return nil, err
	}
	return item.(client.Object), nil
}

func selected(u *unstructured.Unstructured, options *client.ListOptions) bool {
	inNamespace := options.Namespace == "" || options.Namespace == u.GetNamespace()
	return inNamespace && (options.LabelSelector == nil || options.LabelSelector.Matches(labels.Set(u.GetLabels())))
}

// fill makes obj what u is.
func fill(obj client.Object, u *unstructured.Unstructured) error {
	content := u.DeepCopy().Object
	if target, ok := obj.(*unstructured.Unstructured); ok {
		target.Object = content
		return nil
	}
	reflect.ValueOf(obj).Elem().SetZero()
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj)
}
