// Reads a scrape from standard input with the parser that Prometheus itself uses, for the content type that is the
// only argument, and prints its families, one per line, each after `scrape`.
//
// It fails on everything that Prometheus rejects or silently misreads: samples that belong to no family, series that
// occur twice, and histograms whose buckets are not cumulative.
package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"

	"metrics-check/family"
)

func main() {
	if len(os.Args) != 2 {
		family.Check(errors.New("usage: parse CONTENT-TYPE <SCRAPE"))
	}
	text, err := io.ReadAll(os.Stdin)
	family.Check(err)
	read, err := parse(text, os.Args[1])
	family.Check(err)
	lines := []string{}
	for _, each := range read.families {
		lines = append(lines, "scrape "+each.String())
	}
	slices.Sort(lines)
	fmt.Println(strings.Join(lines, "\n"))
}

// scrape is everything that has been read so far.
type scrape struct {
	families map[string]*family.Family
	series   map[string]sample
}

type sample struct {
	labels labels.Labels
	value  float64
}

func parse(text []byte, contentType string) (scrape, error) {
	read := scrape{families: map[string]*family.Family{}, series: map[string]sample{}}
	parser, err := textparse.New(text, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return read, err
	}
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return read, read.histograms()
		}
		if err != nil {
			return read, err
		}
		switch entry {
		case textparse.EntryType:
			name, kind := parser.Type()
			if read.families[string(name)] != nil {
				return read, fmt.Errorf("%s is described twice", name)
			}
			read.families[string(name)] = &family.Family{Type: string(kind)}
		case textparse.EntrySeries:
			_, at, value := parser.Series()
			if at != nil {
				return read, errors.New("a sample has a timestamp, which freezes values of sources that are gone")
			}
			var series labels.Labels
			parser.Labels(&series)
			if err := read.add(sample{series, value}); err != nil {
				return read, err
			}
		}
	}
}

func (s scrape) add(sample sample) error {
	series := sample.labels
	// Prometheus does not distinguish an empty label from one that is absent.
	key := series.WithoutEmpty().String()
	if _, twice := s.series[key]; twice {
		return fmt.Errorf("%s occurs twice", key)
	}
	s.series[key] = sample
	of, suffix := s.owner(series.Get(labels.MetricName))
	if of == nil {
		return fmt.Errorf("%s belongs to no family", key)
	}
	if of.Name == "" || suffix == "_bucket" {
		of.Name = strings.TrimSuffix(series.Get(labels.MetricName), "_bucket")
	}
	series.Range(func(label labels.Label) {
		if label.Name != labels.MetricName && label.Name != labels.BucketLabel {
			of.Labels = append(of.Labels, label.Name)
		}
	})
	if suffix != "_bucket" {
		return nil
	}
	bound, err := strconv.ParseFloat(series.Get(labels.BucketLabel), 64)
	if err == nil && !math.IsInf(bound, 1) && !slices.Contains(of.Buckets, bound) {
		of.Buckets = append(of.Buckets, bound)
	}
	return err
}

// owner returns the family that a sample belongs to, and the part of the sample's name after that of the family.
func (s scrape) owner(sample string) (*family.Family, string) {
	for _, suffix := range []string{"", "_total", "_bucket", "_sum", "_count"} {
		name, found := strings.CutSuffix(sample, suffix)
		if of := s.families[name]; found && of != nil {
			return of, suffix
		}
	}
	return nil, ""
}

// histograms checks that buckets are cumulative, and that the last one has the count.
func (s scrape) histograms() error {
	for key, count := range s.series {
		name, found := strings.CutSuffix(count.labels.Get(labels.MetricName), "_count")
		of := s.families[name]
		if !found || of == nil || of.Type != "histogram" {
			continue
		}
		bucket := labels.NewBuilder(count.labels).Set(labels.MetricName, name+"_bucket")
		before := 0.0
		for _, bound := range append(slices.Clone(of.Buckets), math.Inf(1)) {
			bucket.Set(labels.BucketLabel, labels.FormatOpenMetricsFloat(bound))
			there, found := s.series[bucket.Labels().String()]
			if !found || there.value < before {
				return fmt.Errorf("%s: the bucket %v is missing, or smaller than the one before", key, bound)
			}
			before = there.value
		}
		if before != count.value {
			return fmt.Errorf("%s is %v, and its buckets have %v", key, count.value, before)
		}
	}
	return nil
}
