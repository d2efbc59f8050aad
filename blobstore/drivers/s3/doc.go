// Package s3 stores objects in Amazon S3 and stores that speak its protocol:
// "s3://bucket/prefix?region=eu-central-1".
//
// # What it does
//
// It builds its own client. Credentials come from the SDK's default chain: the
// environment (AWS_ACCESS_KEY_ID and so on), shared files, web identity, Pod
// identity, instance metadata; Open fails if there are none. Parameters, all
// optional; unknown ones are errors:
//
//	region                        signing region; us-east-1 if the endpoint is not Amazon's
//	endpoint                      http(s)://host:port of another store; also AWS_ENDPOINT_URL_S3
//	use_path_style                true unless the endpoint is Amazon's
//	disable_https                 plain HTTP if the endpoint has no scheme
//	profile                       of the shared configuration
//	role, role_session_name, role_external_id   a role to assume
//	anonymous                     no credentials at all
//	ca_bundle                     file of PEM certificates to trust; also AWS_CA_BUNDLE
//	dualstack, fips, accelerate   Amazon's endpoint variants
//	ssetype, kmskeyid             server-side encryption of new objects
//	request_checksum_calculation, response_checksum_validation
//	                              when_supported or when_required; the latter
//	                              unless the endpoint is Amazon's
//	prefix                        folder below the path
//
// # Minimal use
//
//	opts := &blobstore.Options{Openers: s3.Openers()}
//	s, err := blobstore.Open(ctx, "s3://backups/db?endpoint=https://minio.example:9000", opts)
//
// # Guarantees
//
//   - PutBytes is one PUT request up to 5 GiB whose signature covers the SHA-256
//     of the content, so the store refuses what arrives damaged. This needs no
//     checksum feature beyond signature version 4, which every clone has.
//   - A stream of more than 16 MiB is a multipart upload that is aborted, also
//     when the context has ended, unless it completes: nothing stays and is billed.
//   - Delete is one request; S3 does not tell whether there was an object.
//   - A missing bucket is ErrNoBucket, never ErrNotFound.
//
// # What it never does
//
// It never creates or configures buckets, and never deletes versions.
package s3
