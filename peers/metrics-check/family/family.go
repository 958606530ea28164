// Package family prints metrics as lines of text, in one form for every source, so that lines can be compared.
package family

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Family is a metric: its name as in its samples, its type, the names of its labels, and the bounds of its buckets.
type Family struct {
	Name    string
	Type    string
	Labels  []string
	Buckets []float64
}

// String formats a family as `histogram name{label,label} 0.1 1 10`, with sorted labels and without the last bound,
// which is always infinite.
func (f Family) String() string {
	labels := slices.Clone(f.Labels)
	slices.Sort(labels)
	words := []string{f.Type, f.Name + "{" + strings.Join(slices.Compact(labels), ",") + "}"}
	for _, bound := range f.Buckets {
		words = append(words, strconv.FormatFloat(bound, 'g', -1, 64))
	}
	return strings.Join(words, " ")
}

// Print prints the families of a registry whose names have one of these prefixes, in order, each after its source.
// A family without samples is absent, so every metric has to be exercised first.
func Print(source string, registry prometheus.Gatherer, prefixes ...string) {
	gathered, err := registry.Gather()
	Check(err)
	for _, each := range gathered {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(each.GetName(), prefix) }) {
			fmt.Println(source, of(each))
		}
	}
}

func of(gathered *dto.MetricFamily) Family {
	family := Family{Name: gathered.GetName(), Type: strings.ToLower(gathered.GetType().String())}
	for _, metric := range gathered.GetMetric() {
		for _, label := range metric.GetLabel() {
			family.Labels = append(family.Labels, label.GetName())
		}
	}
	for _, bucket := range gathered.GetMetric()[0].GetHistogram().GetBucket() {
		family.Buckets = append(family.Buckets, bucket.GetUpperBound())
	}
	return family
}

// Check ends the program if there is an error.
func Check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
