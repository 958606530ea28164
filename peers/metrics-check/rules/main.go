// Checks alert rules (.yaml) as `promtool check rules` does, and the queries of Grafana dashboards (.json), with the
// parsers that Prometheus itself uses. The arguments are files. Prints how many expressions each has.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"

	"metrics-check/family"
)

// Grafana replaces these before it sends a query.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$instance", ".*")

func main() {
	queries := parser.NewParser(parser.Options{})
	for _, file := range os.Args[1:] {
		count, err := 0, error(nil)
		if strings.HasSuffix(file, ".json") {
			count, err = dashboard(file, queries)
		} else {
			count, err = alerts(file, queries)
		}
		family.Check(err)
		fmt.Println(count, file)
	}
}

func alerts(file string, queries parser.Parser) (int, error) {
	groups, errs := rulefmt.ParseFile(file, false, model.LegacyValidation, queries, slog.Default())
	if len(errs) > 0 {
		return 0, errors.Join(errs...)
	}
	count := 0
	for _, group := range groups.Groups {
		count += len(group.Rules)
	}
	return count, nil
}

func dashboard(file string, queries parser.Parser) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return 0, err
	}
	count := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			if _, err := queries.ParseExpr(variables.Replace(target.Expr)); err != nil {
				return count, fmt.Errorf("%s: %w", panel.Title, err)
			}
			count++
		}
	}
	return count, nil
}
