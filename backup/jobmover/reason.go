package jobmover

// Reasons that an attempt waits or failed for, beside the mover's own, which are in backup/contract.
const (
	// ReasonNoPod: the Job has no Pod yet.
	ReasonNoPod = "MoverPodMissing"
	// ReasonUnschedulable: no node takes the Pod.
	ReasonUnschedulable = "MoverUnschedulable"
	// ReasonImagePull: the image cannot be pulled.
	ReasonImagePull = "MoverImagePullFailed"
	// ReasonSecretMissing: a Secret, or a key of one, is missing.
	ReasonSecretMissing = "SecretMissing"
	// ReasonPreparing: the node still prepares volumes, sandbox or image.
	ReasonPreparing = "MoverPreparing"
	// ReasonCannotStart: the node cannot start the container.
	ReasonCannotStart = "MoverCannotStart"
	// ReasonNotStarted: the start deadline passed and nothing says why.
	ReasonNotStarted = "MoverNotStarted"
	// ReasonNoProgress: the no-progress deadline passed.
	ReasonNoProgress = "MoverNoProgress"
	// ReasonDeadline: the run deadline passed.
	ReasonDeadline = "MoverDeadlineExceeded"
	// ReasonOutOfMemory: the kernel ended the mover at its memory limit.
	ReasonOutOfMemory = "MoverOutOfMemory"
	// ReasonEvicted: the cluster took the Pod from its node.
	ReasonEvicted = "MoverEvicted"
	// ReasonPodDeleted: somebody deleted the Pod.
	ReasonPodDeleted = "MoverPodDeleted"
	// ReasonResultLost: the mover ended and what it did is not known.
	ReasonResultLost = "ResultLost"
	// ReasonResultWrong: the mover's result contradicts its exit code or the request.
	ReasonResultWrong = "ResultContradictory"
)
