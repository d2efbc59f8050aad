// Package durability holds tests that try to make the engine lose data.
//
// # What it does
//
// It kills the data tool at random moments, makes each call of the store fail in every way, damages each object, lets
// writers and pruners meet, and holds the repository against the stock restic program of two versions. Short versions
// always run; "make durability" runs them whole.
//
// # Minimal use
//
//	make durability KILLS=200
//
// # What it never does
//
// It offers nothing to import. It never reaches beyond the folders of its tests.
package durability
