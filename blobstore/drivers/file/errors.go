package file

import (
	"errors"
	"io/fs"
	"syscall"

	"gocloud.dev/gcerrors"

	"example.com/pvcbackup/blobstore"
)

var (
	errNotSupported = errors.New("files have no signed URLs")
	errNotFile      = errors.New("a folder or special file has this name")
)

// classify finds the kind of a file system's error.
func classify(err error) blobstore.Kind {
	switch {
	case errors.Is(err, errNotSupported):
		return blobstore.KindUnsupported
	case errors.Is(err, errNotFile), isErrno(err, syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EINVAL):
		return blobstore.KindInvalid
	case errors.Is(err, fs.ErrNotExist):
		return blobstore.KindNotFound
	case errors.Is(err, fs.ErrExist):
		return blobstore.KindExists
	case errors.Is(err, fs.ErrPermission), isErrno(err, syscall.EROFS):
		return blobstore.KindPermission
	case isErrno(err, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG):
		return blobstore.KindFull
	}
	return blobstore.KindUnknown
}

func isErrno(err error, list ...syscall.Errno) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// code gives gocloud's word for the same.
func code(err error) gcerrors.ErrorCode {
	switch classify(err) {
	case blobstore.KindNotFound:
		return gcerrors.NotFound
	case blobstore.KindExists:
		return gcerrors.FailedPrecondition
	case blobstore.KindPermission:
		return gcerrors.PermissionDenied
	case blobstore.KindInvalid:
		return gcerrors.InvalidArgument
	case blobstore.KindFull:
		return gcerrors.ResourceExhausted
	case blobstore.KindUnsupported:
		return gcerrors.Unimplemented
	}
	return gcerrors.Unknown
}
