// Package contract is what an operator and the mover Pods it starts agree on.
//
// # What it does
//
// The operator puts a Request and a few paths into the mover's environment. The mover does the work, writes a Result
// to its termination message, and exits with a code. Progress goes to the mover's log, one line at a time. This package
// holds the names, the encodings and their limits, and nothing else, so that both sides can be replaced.
//
// # Minimal use
//
//	text, err := request.Encode()              // operator: the value of EnvRequest
//	request, err := contract.DecodeRequest(text) // mover
//	message := result.Encode()                 // mover: at most MaxResult bytes, whatever the result holds
//	result, err := contract.DecodeResult(message) // operator
//
// # Guarantees
//
// Encode of a Result never exceeds MaxResult bytes and always decodes. A message that does not decode, or that is empty,
// is an error and never a success. No password, key or credential has a field here: those reach the mover as
// environment variables that refer to Secrets.
//
// # What it never does
//
// It imports neither Kubernetes nor the repository engine, reads no environment and performs no I/O.
package contract
