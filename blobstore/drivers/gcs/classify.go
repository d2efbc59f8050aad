package gcs

import (
	"errors"
	"strings"

	"cloud.google.com/go/storage"
	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"

	"example.com/pvcbackup/blobstore"
)

// Classify finds the kind of an error of the Cloud Storage client. gocloud calls
// a refused request NotFound; here it is a refused one.
func Classify(err error) blobstore.Kind {
	if errors.Is(err, storage.ErrBucketNotExist) {
		return blobstore.KindNoBucket
	}
	var api *googleapi.Error
	if errors.As(err, &api) {
		if api.Code == 404 && strings.Contains(api.Message+api.Body, "bucket does not exist") {
			return blobstore.KindNoBucket
		}
		return byStatus(api.Code)
	}
	if errors.Is(err, storage.ErrObjectNotExist) {
		return blobstore.KindNotFound
	}
	var token *oauth2.RetrieveError
	if errors.As(err, &token) && token.Response != nil && token.Response.StatusCode < 500 {
		return blobstore.KindPermission
	}
	return blobstore.KindUnknown
}

func byStatus(status int) blobstore.Kind {
	switch {
	case status == 404:
		return blobstore.KindNotFound
	case status == 401 || status == 403:
		return blobstore.KindPermission
	case status == 412:
		return blobstore.KindExists
	case status == 416:
		return blobstore.KindCorrupt
	case status == 501:
		return blobstore.KindUnsupported
	case status == 408 || status == 409 || status == 410 || status == 429 || status >= 500:
		return blobstore.KindUnavailable
	case status >= 300:
		return blobstore.KindInvalid
	}
	return blobstore.KindUnknown
}
