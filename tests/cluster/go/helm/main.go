// Renders a chart as Helm does.
//
// Standard input is a JSON request, standard output the list of what its templates make, hooks among them, after the
// CustomResourceDefinitions that it comes with.
package main

import (
	"encoding/json"
	"log"
	"maps"
	"os"
	"slices"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"sigs.k8s.io/yaml"
)

type request struct {
	Chart      string         `json:"chart"` // its folder
	Namespace  string         `json:"namespace"`
	Release    string         `json:"release"`
	Kubernetes string         `json:"kubernetes"`
	Values     map[string]any `json:"values"`
}

func main() {
	var request request
	if err := json.NewDecoder(os.Stdin).Decode(&request); err != nil {
		log.Fatal(err)
	}
	texts, err := request.render()
	if err != nil {
		log.Fatal(err)
	}
	objects := []map[string]any{}
	for _, text := range texts {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			log.Fatalf("%v in\n%s", err, text)
		}
		if len(object) > 0 {
			objects = append(objects, object)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(objects); err != nil {
		log.Fatal(err)
	}
}

// render follows renderResources, without a cluster that templates could look things up in:
// https://github.com/helm/helm/blob/v3.19.5/pkg/action/action.go
func (r *request) render() ([]string, error) {
	chart, err := loader.LoadDir(r.Chart)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependenciesWithMerge(chart, r.Values); err != nil {
		return nil, err
	}
	version, err := chartutil.ParseKubeVersion(r.Kubernetes)
	if err != nil {
		return nil, err
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	options := chartutil.ReleaseOptions{Name: r.Release, Namespace: r.Namespace, Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, r.Values, options, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, definition := range chart.CRDObjects() {
		texts = append(texts, documents(string(definition.File.Data))...)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, "NOTES.txt") {
			texts = append(texts, documents(files[name])...)
		}
	}
	return texts, nil
}

// documents are those of a file, in its order; what holds comments alone is none.
func documents(text string) []string {
	parts := releaseutil.SplitManifests(text)
	names := slices.Collect(maps.Keys(parts))
	sort.Sort(releaseutil.BySplitManifestsOrder(names))
	found := make([]string, len(names))
	for i, name := range names {
		found[i] = parts[name]
	}
	return found
}
