package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"

	"example.com/pvcbackup/blobstore"
)

// Openers returns the opener of the scheme "azblob".
func Openers() map[string]blobstore.Opener {
	return map[string]blobstore.Opener{"azblob": open}
}

// containerName matches names of containers, and $root, $web and $logs.
var containerName = regexp.MustCompile(`^[$a-z0-9][a-z0-9-]{2,62}$`)

func open(ctx context.Context, u *url.URL, _ *blobstore.Options) (*blobstore.Driver, error) {
	switch {
	case u.Host == "":
		return nil, blobstore.Invalid("open", "azblob URL names no container: write azblob://container/prefix")
	case !containerName.MatchString(u.Host):
		return nil, blobstore.Invalid("open", "azblob URL has the container %q: names have 3 to 63 lower-case letters, digits and dashes", u.Host)
	}
	service, err := parse(u)
	if err != nil {
		return nil, err
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = 64
	client, err := newClient(service, u.Host, base)
	if err != nil {
		return nil, &blobstore.Error{Op: "open", Kind: blobstore.KindPermission, Err: fmt.Errorf("no usable Azure credentials: %w", err)}
	}
	d, err := NewDriver(ctx, client)
	if err != nil {
		return nil, err
	}
	d.Prefix = blobstore.PathPrefix(u)
	d.Close = func() error {
		base.CloseIdleConnections()
		return d.Bucket.Close()
	}
	return d, nil
}

// parse returns the URL of the service. It holds the SAS token, if any.
func parse(u *url.URL) (*url.URL, error) {
	o := azureblob.NewDefaultServiceURLOptions()
	for name, values := range u.Query() {
		switch name {
		case "storage_account":
			o.AccountName = values[0]
		case "domain":
			o.StorageDomain = values[0]
		case "protocol":
			o.Protocol = values[0]
		case "localemu":
			b, err := strconv.ParseBool(values[0])
			if err != nil {
				return nil, blobstore.Invalid("open", "azblob URL has localemu=%q: it must be true or false", values[0])
			}
			o.IsLocalEmulator = b
		default:
			return nil, blobstore.Invalid("open", "azblob URL has the unknown parameter %q; it takes storage_account, domain, protocol, localemu and prefix", name)
		}
	}
	if o.AccountName == "" {
		return nil, blobstore.Invalid("open", "azblob URL names no account: add storage_account=… or set AZURE_STORAGE_ACCOUNT")
	}
	raw, err := azureblob.NewServiceURL(o)
	if err != nil {
		return nil, blobstore.Invalid("open", "azblob URL: %w", err)
	}
	service, err := url.Parse(string(raw))
	if err != nil {
		return nil, blobstore.Invalid("open", "azblob URL: account and domain make no service URL")
	}
	return service, nil
}

func newClient(service *url.URL, name string, base http.RoundTripper) (*container.Client, error) {
	opts := &container.ClientOptions{}
	opts.Transport = &http.Client{Transport: blobstore.WatchTransport(base)}
	// Blocks of a stream can only be sent again in here; all else is retried by
	// the store above, with a budget.
	opts.Retry = policy.RetryOptions{MaxRetries: 3, MaxRetryDelay: 10 * time.Second}
	at := service.JoinPath(name).String()
	if account, key := os.Getenv("AZURE_STORAGE_ACCOUNT"), os.Getenv("AZURE_STORAGE_KEY"); account != "" && key != "" {
		cred, err := azblob.NewSharedKeyCredential(account, key)
		if err != nil {
			return nil, errors.New("AZURE_STORAGE_KEY is not base64")
		}
		return container.NewClientWithSharedKeyCredential(at, cred, opts)
	}
	if os.Getenv("AZURE_STORAGE_SAS_TOKEN") != "" {
		return container.NewClientWithNoCredential(at, opts)
	}
	for _, env := range []string{"AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGEBLOB_CONNECTIONSTRING"} {
		if v := os.Getenv(env); v != "" {
			c, err := container.NewClientFromConnectionString(v, name, opts)
			if err != nil {
				return nil, fmt.Errorf("%s cannot be read", env)
			}
			return c, nil
		}
	}
	cred, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, err
	}
	return container.NewClient(at, cred, opts)
}

// NewDriver makes a driver of a client that the caller has built, for
// blobstore.FromDriver. The client's own retries come on top of the Store's.
func NewDriver(ctx context.Context, client *container.Client) (*blobstore.Driver, error) {
	b, err := azureblob.OpenBucket(ctx, client, nil)
	if err != nil {
		return nil, blobstore.Invalid("open", "azblob container: %w", err)
	}
	return &blobstore.Driver{Bucket: b, Classify: Classify, Tune: tune}, nil
}

const (
	oneRequest  = 256 << 20
	streamBlock = 112 << 20 // 50,000 of them are 5.3 TiB
)

// tune sends content that fits into one block as one request: the block must be
// larger than the content for the SDK to see its end.
func tune(size int64, o *blob.WriterOptions) {
	o.MaxConcurrency = 1
	o.BufferSize = streamBlock
	if size >= 0 && size <= oneRequest {
		o.BufferSize = int(size) + 1
	}
}
