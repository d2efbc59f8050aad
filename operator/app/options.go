package app

import (
	"flag"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Options are the operator's flags.
type Options struct {
	// MoverImage is the image that movers run.
	MoverImage string
	// ClusterID names this cluster in repositories. Empty takes the UID of the namespace kube-system.
	ClusterID string
	// Stores completes URLs without parameters, by scheme or by bucket.
	Stores StoreParameters
	// MetricsAddress and ProbeAddress are served at; "0" serves nothing.
	MetricsAddress string
	ProbeAddress   string
	// LeaderElect lets one of several replicas work at a time.
	LeaderElect bool
	// LeaderElectionNamespace is where the lease is; empty takes the operator's own namespace.
	LeaderElectionNamespace string
	// Workers is how many objects of a kind are reconciled at once.
	Workers int
	// MaintainEvery is the least time between two runs of forget and prune of one repository.
	MaintainEvery time.Duration
	// ShutdownTimeout is how long a stop may take.
	ShutdownTimeout time.Duration
}

// DefaultOptions returns the defaults of the flags.
func DefaultOptions() Options {
	return Options{
		MoverImage: "pvcbackup:latest", MetricsAddress: ":8080", ProbeAddress: ":8081",
		Workers: 4, MaintainEvery: 24 * time.Hour, ShutdownTimeout: 30 * time.Second,
	}
}

// AddFlags registers the flags with the options' present values as defaults.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.MoverImage, "mover-image", o.MoverImage, "The image that movers run; its entrypoint is the pvcbackup data tool.")
	flags.StringVar(&o.ClusterID, "cluster-id", o.ClusterID,
		"The name of this cluster in repositories, such as \"prod-eu\". Default: the UID of the namespace kube-system.")
	flags.Var(&o.Stores, "store-parameters",
		"Parameters for store URLs that have none, as SCHEME=QUERY or SCHEME://BUCKET=QUERY, "+
			"such as s3=endpoint=https://s3.example.com&region=eu-1. May be given several times; a bucket goes before its scheme.")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", o.MetricsAddress, "Where metrics are served; 0 serves none.")
	flags.StringVar(&o.ProbeAddress, "health-probe-bind-address", o.ProbeAddress, "Where /healthz and /readyz are served; 0 serves none.")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "Let one of several replicas work at a time.")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", o.LeaderElectionNamespace,
		"The namespace of the lease. Default: the operator's own; needed when it runs outside the cluster.")
	flags.IntVar(&o.Workers, "workers", o.Workers, "How many objects of a kind are reconciled at once.")
	flags.DurationVar(&o.MaintainEvery, "maintain-every", o.MaintainEvery, "The least time between two runs of forget and prune of one repository.")
	flags.DurationVar(&o.ShutdownTimeout, "shutdown-timeout", o.ShutdownTimeout, "How long a stop may take.")
}

// Validate refuses options that cannot work, with a sentence that names the flag.
func (o Options) Validate() error {
	switch {
	case o.MoverImage == "":
		return fmt.Errorf("--mover-image is empty: name the image that movers run")
	case o.Workers < 1:
		return fmt.Errorf("--workers is %d: it must be at least 1", o.Workers)
	case o.MaintainEvery <= 0:
		return fmt.Errorf("--maintain-every is %s: it must be positive", o.MaintainEvery)
	case strings.ContainsAny(o.ClusterID, "/\\ ,"):
		return fmt.Errorf("--cluster-id is %q: it must not contain slashes, spaces or commas", o.ClusterID)
	}
	return nil
}

// StoreParameters is the value of --store-parameters.
type StoreParameters map[string]string

// String implements flag.Value.
func (s StoreParameters) String() string {
	var parts []string
	for key, query := range s {
		parts = append(parts, key+"="+query)
	}
	return strings.Join(parts, " ")
}

// Set implements flag.Value.
func (s *StoreParameters) Set(text string) error {
	key, query, found := strings.Cut(text, "=")
	if !found || key == "" {
		return fmt.Errorf("%q is not SCHEME=QUERY or SCHEME://BUCKET=QUERY", text)
	}
	if _, err := url.ParseQuery(query); err != nil {
		return fmt.Errorf("the parameters for %s are not a URL query: %w", key, err)
	}
	if *s == nil {
		*s = StoreParameters{}
	}
	(*s)[key] = query
	return nil
}
