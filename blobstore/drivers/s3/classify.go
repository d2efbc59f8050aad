package s3

import (
	"errors"

	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"example.com/pvcbackup/blobstore"
)

// Classify finds the kind of an error of the S3 client by its code, else by the
// HTTP status.
func Classify(err error) blobstore.Kind {
	var api smithy.APIError
	if errors.As(err, &api) {
		if k := byCode(api.ErrorCode()); k != blobstore.KindUnknown {
			return k
		}
	}
	var resp *smithyhttp.ResponseError
	if errors.As(err, &resp) && resp.Response != nil {
		return byStatus(resp.HTTPStatusCode())
	}
	return blobstore.KindUnknown
}

func byCode(code string) blobstore.Kind {
	switch code {
	case "NoSuchKey", "NotFound":
		return blobstore.KindNotFound
	case "NoSuchBucket":
		return blobstore.KindNoBucket
	case "PreconditionFailed":
		return blobstore.KindExists
	case "AccessDenied", "Forbidden", "AllAccessDisabled", "AccountProblem", "UnauthorizedAccess",
		"InvalidAccessKeyId", "SignatureDoesNotMatch", "XAdminUserNotFound", "InvalidClientTokenId",
		"ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidObjectState":
		return blobstore.KindPermission
	case "RequestTimeTooSkewed":
		return blobstore.KindClockSkew
	case "NotImplemented", "MethodNotAllowed", "XNotImplemented":
		return blobstore.KindUnsupported
	case "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", "BadDigest", "InvalidDigest", "InvalidRange":
		return blobstore.KindCorrupt
	case "EntityTooLarge":
		return blobstore.KindTooLarge
	case "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded":
		return blobstore.KindFull
	case "InvalidBucketName", "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException",
		"InvalidArgument", "InvalidRequest", "KeyTooLongError",
		// Stores on file systems hold no object below another one's key.
		"ObjectParentIsFile", "ExistingObjectIsDirectory", "XMinioParentIsObject", "XMinioObjectExistsAsDirectory":
		return blobstore.KindInvalid
	case "ConditionalRequestConflict", "OperationAborted", "SlowDown", "SlowDownRead", "SlowDownWrite", "Throttling",
		"ThrottlingException", "RequestLimitExceeded", "TooManyRequests", "InternalError", "ServiceUnavailable",
		"RequestTimeout", "RequestTimeoutException", "IncompleteBody", "NoSuchUpload", "Busy":
		return blobstore.KindUnavailable
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
	case status == 507:
		return blobstore.KindFull
	case status == 408 || status == 409 || status == 429 || status >= 500:
		return blobstore.KindUnavailable
	case status >= 300 && status < 500:
		return blobstore.KindInvalid
	}
	return blobstore.KindUnknown
}
