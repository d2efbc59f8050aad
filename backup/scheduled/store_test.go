package scheduled

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/reconcilekit"
)

var testStores = Stores{ClusterID: "c1", Parameters: map[string]string{
	"s3": "region=eu-1", "s3://special": "endpoint=https://s3.example.com",
}}

func TestAStoreURLIsCompletedByBucketThenByScheme(t *testing.T) {
	for name, test := range map[string]struct {
		storage Storage
		want    string
	}{
		"by scheme":             {Storage{URL: "s3://b"}, "s3://b/c1/ns/data?region=eu-1"},
		"by bucket":             {Storage{URL: "s3://special"}, "s3://special/c1/ns/data?endpoint=https://s3.example.com"},
		"not with its own":      {Storage{URL: "s3://special?region=x"}, "s3://special/c1/ns/data?region=x"},
		"nothing is configured": {Storage{URL: "gs://b"}, "gs://b/c1/ns/data"},
		"its own prefix":        {Storage{URL: "gs://b", Prefix: "a/b"}, "gs://b/a/b"},
		"below a path":          {Storage{URL: "gs://b/p/", Prefix: "a"}, "gs://b/p/a"},
		"on a volume":           {Storage{URL: "file:///pvcbackup/destination", Volume: "v"}, "file:///pvcbackup/destination/c1/ns/data"},
		"below a volume":        {Storage{URL: "file:///pvcbackup/destination/x/", Volume: "v"}, "file:///pvcbackup/destination/x/c1/ns/data"},
	} {
		got, err := testStores.URL(&test.storage, "c1/ns/data")
		require.NoError(t, err, name)
		require.Equal(t, test.want, got, name)
	}
	got, err := testStores.URL(&Storage{URL: "gs://b"}, "")
	require.NoError(t, err)
	require.Equal(t, "gs://b/", got)
}

func TestAStoreURLIsRefusedAndNothingSecretIsRepeated(t *testing.T) {
	file := "file://" + backup.DestinationPath
	for name, storage := range map[string]*Storage{
		"no storage":                    nil,
		"empty":                         {},
		"no scheme":                     {URL: "bucket"},
		"does not parse":                {URL: "s3://user:hunter2@%zz"},
		"a user":                        {URL: "s3://hunter2@b"},
		"a password":                    {URL: "s3://user:hunter2@b"},
		"in memory":                     {URL: "mem://"},
		"in memory with a name":         {URL: "mem://x", Volume: "v"},
		"a folder without a volume":     {URL: file},
		"a folder elsewhere":            {URL: "file:///data", Volume: "v"},
		"a folder with the same start":  {URL: file + "x", Volume: "v"},
		"a folder that leads out":       {URL: file + "/../x", Volume: "v"},
		"a folder of another host":      {URL: "file://host" + backup.DestinationPath, Volume: "v"},
		"a prefix that leads out":       {URL: file, Volume: "v", Prefix: "../../etc"},
		"a prefix that leads elsewhere": {URL: "s3://b", Prefix: "a/../../other"},
		"no bucket":                     {URL: "s3:///path"},
		"opaque":                        {URL: "s3:bucket"},
	} {
		_, err := testStores.URL(storage, "c1/ns/data")
		require.Error(t, err, name)
		require.Equal(t, "InvalidStorage", reconcilekit.Reason(err), name)
		require.Equal(t, reconcilekit.ClassTerminal, reconcilekit.Classify(err), name)
		require.NotContains(t, err.Error(), "hunter2", name)
	}
}

func TestThePlaceOfAnObjectsBackups(t *testing.T) {
	given := &Encryption{PasswordSecretRef: &SecretKeyRef{Name: "mine", Key: "k"}}
	url := "s3://b/c1/ns/data?region=eu-1"
	for name, test := range map[string]struct {
		spec   Spec
		status Status
		want   Place
	}{
		"defaults": {want: Place{URL: url, Secrets: backup.Secrets{
			Password: KeySecretName("data", url), PasswordKey: contract.PasswordKey, Credentials: DefaultCredentials, CredentialsOptional: true}}},
		"all given": {
			spec: Spec{Encryption: given, Storage: &Storage{URL: "s3://b", CredentialsSecretRef: &SecretRef{Name: "creds"}}},
			want: Place{URL: url, Secrets: backup.Secrets{Password: "mine", PasswordKey: "k", Credentials: "creds"}},
		},
		"a password without a key's name": {
			spec: Spec{Encryption: &Encryption{PasswordSecretRef: &SecretKeyRef{Name: "mine"}}},
			want: Place{URL: url, Secrets: backup.Secrets{
				Password: "mine", PasswordKey: contract.PasswordKey, Credentials: DefaultCredentials, CredentialsOptional: true}},
		},
		"a known repository": {
			spec: Spec{Encryption: given}, status: Status{Repository: &Repository{URL: url, ID: "r"}},
			want: Place{URL: url, RepositoryID: "r", Secrets: backup.Secrets{
				Password: "mine", PasswordKey: "k", Credentials: DefaultCredentials, CredentialsOptional: true}},
		},
		"another place is another repository": {
			spec: Spec{Encryption: given}, status: Status{Repository: &Repository{URL: "s3://other", ID: "r"}},
			want: Place{URL: url, Secrets: backup.Secrets{
				Password: "mine", PasswordKey: "k", Credentials: DefaultCredentials, CredentialsOptional: true}},
		},
		"on a volume": {
			spec: Spec{Encryption: given, Storage: &Storage{URL: "file:///pvcbackup/destination", Volume: "v"}},
			want: Place{URL: "file:///pvcbackup/destination/c1/ns/data", Volume: "v", Secrets: backup.Secrets{
				Password: "mine", PasswordKey: "k", Credentials: DefaultCredentials, CredentialsOptional: true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &thing{Spec: thingSpec{PVCName: "data", Spec: test.spec}, Status: test.status}
			obj.Namespace = "ns"
			if obj.Spec.Storage == nil {
				obj.Spec.Storage = &Storage{URL: "s3://b"}
			}
			test.want.Identity = contract.Identity{Host: "c1", Path: "/ns/data"}
			got, err := testStores.Locate(obj)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(test.want, got))
		})
	}
}

func TestMaintenanceHasCredentialsOfItsOwn(t *testing.T) {
	same := &Storage{CredentialsSecretRef: &SecretRef{Name: "creds"}}
	require.Equal(t, backup.Secrets{Credentials: "creds"}, same.maintenance())
	own := &Storage{CredentialsSecretRef: &SecretRef{Name: "creds"}, MaintenanceCredentialsSecretRef: &SecretRef{Name: "strong"}}
	require.Equal(t, backup.Secrets{Credentials: "strong"}, own.maintenance())
	require.Equal(t, backup.Secrets{Credentials: "creds"}, own.Credentials())
}

func TestTheKeysNameFollowsFromTheClaimAndThePlaceOfItsRepository(t *testing.T) {
	name := KeySecretName("data", "s3://b/p?region=a")
	require.Equal(t, name, KeySecretName("data", "s3://b/p"), "how the store is reached has no part in it")
	require.NotEqual(t, name, KeySecretName("data2", "s3://b/p"))
	require.NotEqual(t, name, KeySecretName("data", "s3://b/q"))
}
