// Package azure stores objects in Azure Blob Storage: "azblob://container/prefix".
//
// # What it does
//
// It builds its own client. Credentials come from AZURE_STORAGE_KEY,
// AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_CONNECTION_STRING, else from the
// default chain of the Azure SDK (environment, workload identity, managed
// identity). Parameters, all optional; unknown ones are errors:
//
//	storage_account   account; also AZURE_STORAGE_ACCOUNT
//	domain            such as blob.core.usgovcloudapi.net; known clouds only
//	protocol          https, or http for a local emulator
//	localemu          true for an emulator at a loopback address in domain
//	prefix            folder below the path
//
// # Minimal use
//
//	opts := &blobstore.Options{Openers: azure.Openers()}
//	s, err := blobstore.Open(ctx, "azblob://backups/db?storage_account=acme", opts)
//
// # Guarantees
//
//   - A missing container is ErrNoBucket, an unknown host ErrUnavailable, neither ErrNotFound.
//   - PutBytes of up to 256 MiB is one request; streams go in blocks of 112 MiB,
//     held in memory, so that 5 TiB fit.
//
// # What it never does
//
// It never creates or configures containers, and never deletes versions.
package azure
