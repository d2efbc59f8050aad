// Command bench compares this project's engine with restic and kopia: same data, same machine, same run.
//
// # What it does
//
// It makes a corpus in memory, builds the data tool afresh, and runs the three programs as users run them, one at a time,
// alternating, several times over. It prints Markdown tables: medians of wall and CPU time, ratios and the targets they
// have to reach, peak resident memory, and the size of the repositories; the same through the portable gocloud interface
// alone; the same against a local S3 server, with the number of requests by kind; how far the first backups are from the
// sum of their stages; and, on its own, how cost grows.
//
// # Minimal use
//
//	make bench
//	make bench ROWS=random,small RUNS=1 TABLES=memory
//	make bench-growth
//
// # Guarantees
//
//   - Source, repositories, caches and targets are in memory, so no run finds more or less of them cached than another.
//   - Every repository that the data tool wrote passes "restic check", once for each corpus with --read-data, and every
//     restore is compared with its source. A difference ends the program with an error.
//   - The peers are the pinned programs that "make tools tool-kopia" builds, with the defaults of their makers, except
//     that kopia compresses with zstd-fastest and leaves maintenance for later, and that their caches are in memory.
//   - What it made is removed, however it ends, unless it is killed.
//
// # What it never does
//
// It judges nothing: that a target is missed is shown, and no error.
package main
