package azure

import (
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"example.com/pvcbackup/blobstore"
)

// Classify finds the kind of an error of the Azure client by its code, else by
// the HTTP status.
func Classify(err error) blobstore.Kind {
	var auth *azidentity.AuthenticationFailedError
	if errors.As(err, &auth) {
		return blobstore.KindPermission
	}
	var resp *azcore.ResponseError
	if !errors.As(err, &resp) {
		return blobstore.KindUnknown
	}
	if k := byCode(bloberror.Code(resp.ErrorCode)); k != blobstore.KindUnknown {
		return k
	}
	return byStatus(resp.StatusCode)
}

func byCode(code bloberror.Code) blobstore.Kind {
	switch code {
	case bloberror.BlobNotFound:
		return blobstore.KindNotFound
	case bloberror.ContainerNotFound, bloberror.ContainerDisabled:
		return blobstore.KindNoBucket
	case bloberror.BlobAlreadyExists, bloberror.ConditionNotMet, bloberror.TargetConditionNotMet, bloberror.SourceConditionNotMet:
		return blobstore.KindExists
	case bloberror.InvalidRange, bloberror.MD5Mismatch, bloberror.CRC64Mismatch:
		return blobstore.KindCorrupt
	case bloberror.ContainerBeingDeleted, bloberror.ServerBusy, bloberror.InternalError, bloberror.OperationTimedOut:
		return blobstore.KindUnavailable
	case bloberror.RequestBodyTooLarge:
		return blobstore.KindTooLarge
	case bloberror.AccountIsDisabled, bloberror.LeaseIDMissing:
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
	case status == 405 || status == 501:
		return blobstore.KindUnsupported
	case status == 408 || status == 409 || status == 429 || status >= 500:
		return blobstore.KindUnavailable
	case status >= 300:
		return blobstore.KindInvalid
	}
	return blobstore.KindUnknown
}
