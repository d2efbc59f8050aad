package repo

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/restic/chunker"

	"example.com/pvcbackup/backup/repo/id"
)

// config is the content of the object of that name.
type config struct {
	Version    uint   `json:"version"`
	ID         string `json:"id"`
	Polynomial string `json:"chunker_polynomial"`
}

// maxDegree is the largest degree that the chunker can work with.
const maxDegree = 53

func parseConfig(text []byte) (config, uint64, error) {
	var c config
	if err := json.Unmarshal(text, &c); err != nil {
		return config{}, 0, damaged(configKey, "%w", err)
	}
	if c.Version != 1 && c.Version != 2 {
		return config{}, 0, fmt.Errorf("%w: it is %d, known are 1 and 2", ErrVersion, c.Version)
	}
	if _, err := id.Parse(c.ID); err != nil {
		return config{}, 0, damaged(configKey, "%w", err)
	}
	p, err := strconv.ParseUint(c.Polynomial, 16, 64)
	if err != nil {
		return config{}, 0, damaged(configKey, "chunker_polynomial: %w", err)
	}
	if err := checkPolynomial(p); err != nil {
		return config{}, 0, damaged(configKey, "chunker_polynomial: %w", err)
	}
	return c, p, nil
}

func checkPolynomial(p uint64) error {
	pol := chunker.Pol(p)
	if d := pol.Deg(); d < 1 || d > maxDegree {
		return fmt.Errorf("polynomial %x has the degree %d, which must be 1 to %d", p, d, maxDegree)
	}
	if !pol.Irreducible() {
		return fmt.Errorf("polynomial %x is not irreducible", p)
	}
	return nil
}
