// Judges Applications by their AppProject, and its sync windows, and objects by their health checks, as Argo CD does.
//
// Standard input is a JSON request, standard output its answer.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path"
	"text/template"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/argo/normalizers"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/gitops-engine/pkg/diff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type request struct {
	Project    v1alpha1.AppProject `json:"project"`
	Deliveries []delivery          `json:"deliveries"`
	Moments    []moment            `json:"moments"`
	Checks     []check             `json:"checks"`
	Pairs      []pair              `json:"pairs"`
}

// A delivery is an Application, or what an ApplicationSet makes of one directory, and the objects in its folder.
type delivery struct {
	Application    *v1alpha1.Application       `json:"application"`
	ApplicationSet *v1alpha1.ApplicationSet    `json:"applicationSet"`
	Directory      string                      `json:"directory"`
	Objects        []unstructured.Unstructured `json:"objects"`
}

// A moment is a time at which an Application of this name is to be synced.
type moment struct {
	Application string    `json:"application"`
	At          time.Time `json:"at"`
	IsManual    bool      `json:"isManual"`
}

// A check is the Lua text of a health check, and an object that it is asked about.
type check struct {
	Lua    string                    `json:"lua"`
	Object unstructured.Unstructured `json:"object"`
}

type health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// A pair is an object as it is and as it is to be, under an Application that ignores some differences.
type pair struct {
	Application v1alpha1.Application      `json:"application"`
	Live        unstructured.Unstructured `json:"live"`
	Target      unstructured.Unstructured `json:"target"`
}

type answer struct {
	// What Argo CD refuses, in words.
	Problems []string `json:"problems"`
	// The names of the Applications of all deliveries.
	Applications []string `json:"applications"`
	// Whether the windows let each of the moments' syncs through.
	MaySync []bool `json:"maySync"`
	// What each check says.
	Healths []health `json:"healths"`
	// Whether each pair differs in anything that is not ignored.
	Differ []bool `json:"differ"`
}

func main() {
	var request request
	if err := json.NewDecoder(os.Stdin).Decode(&request); err != nil {
		log.Fatal(err)
	}
	answer, err := request.judge()
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		log.Fatal(err)
	}
}

func (r *request) judge() (answer, error) {
	result := answer{Problems: []string{}, Applications: []string{}, MaySync: []bool{}, Healths: []health{}, Differ: []bool{}}
	if err := r.Project.ValidateProject(); err != nil {
		result.Problems = append(result.Problems, err.Error())
	}
	for _, delivery := range r.Deliveries {
		application, err := delivery.application()
		if err != nil {
			return answer{}, err
		}
		problems, err := refusals(r.Project, application, delivery.Objects)
		if err != nil {
			return answer{}, err
		}
		result.Problems = append(result.Problems, problems...)
		result.Applications = append(result.Applications, application.Name)
	}
	for _, moment := range r.Moments {
		application := v1alpha1.Application{}
		application.Name = moment.Application
		windows := r.Project.Spec.SyncWindows.Matches(&application)
		may, err := maySync(windows, moment)
		if err != nil {
			return answer{}, err
		}
		result.MaySync = append(result.MaySync, may)
	}
	for _, check := range r.Checks {
		found, err := (lua.VM{}).ExecuteHealthLua(&check.Object, check.Lua)
		if err != nil {
			return answer{}, err
		}
		result.Healths = append(result.Healths, health{string(found.Status), found.Message})
	}
	for _, pair := range r.Pairs {
		differs, err := pair.differs()
		if err != nil {
			return answer{}, err
		}
		result.Differ = append(result.Differ, differs)
	}
	return result, nil
}

// differs compares by structure, after the fields are gone that the Application ignores.
func (p *pair) differs() (bool, error) {
	normalizer, err := normalizers.NewIgnoreNormalizer(p.Application.Spec.IgnoreDifferences, nil, normalizers.IgnoreNormalizerOpts{})
	if err != nil {
		return false, err
	}
	result, err := diff.Diff(&p.Target, &p.Live, diff.WithNormalizer(normalizer))
	if err != nil {
		return false, err
	}
	return result.Modified, nil
}

// refusals follows ValidatePermissions for the Application, and for its objects the check before each of them is synced:
// https://github.com/argoproj/argo-cd/blob/v3.3.10/util/argo/argo.go
// https://github.com/argoproj/argo-cd/blob/v3.3.10/controller/sync.go
func refusals(
	project v1alpha1.AppProject, application *v1alpha1.Application, objects []unstructured.Unstructured,
) ([]string, error) {
	var found []string
	if application.Spec.Project != project.Name {
		found = append(found, fmt.Sprintf("%s: belongs to the project %s", application.Name, application.Spec.Project))
	}
	for _, source := range application.Spec.GetSources() {
		if !project.IsSourcePermitted(source) {
			found = append(found, fmt.Sprintf("%s: source %s", application.Name, source.RepoURL))
		}
	}
	destination := application.Spec.Destination
	cluster := &v1alpha1.Cluster{Name: destination.Name, Server: destination.Server}
	none := func(string) ([]*v1alpha1.Cluster, error) { return nil, nil }
	isPermitted, err := project.IsDestinationPermitted(cluster, destination.Namespace, none)
	if err != nil {
		return nil, err
	}
	if !isPermitted {
		found = append(found, fmt.Sprintf("%s: destination %s/%s", application.Name, cluster.Name, destination.Namespace))
	}
	for _, object := range objects {
		isPermitted, err := project.IsLiveResourcePermitted(&object, cluster, none)
		if err != nil {
			return nil, err
		}
		if !isPermitted {
			kind := object.GroupVersionKind().GroupKind()
			found = append(found, fmt.Sprintf("%s: %s %s/%s", application.Name, kind, object.GetNamespace(), object.GetName()))
		}
	}
	return found, nil
}

// application fills the template of an ApplicationSet with what its git generator says of the directory.
func (d delivery) application() (*v1alpha1.Application, error) {
	if d.Application != nil {
		return d.Application, nil
	}
	text, err := json.Marshal(d.ApplicationSet.Spec.Template)
	if err != nil {
		return nil, err
	}
	filled, err := template.New("").Option(d.ApplicationSet.Spec.GoTemplateOptions...).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	parameters := map[string]any{"path": map[string]any{"path": d.Directory, "basename": path.Base(d.Directory)}}
	if err := filled.Execute(&out, parameters); err != nil {
		return nil, err
	}
	var application v1alpha1.Application
	return &application, json.Unmarshal(out.Bytes(), &application)
}

// maySync asks the windows as they are at a time. Argo CD's CanSync looks at the clock, so each window is given to it as
// one that is open for long or that opens in half a year.
func maySync(windows *v1alpha1.SyncWindows, moment moment) (bool, error) {
	if !windows.HasWindows() {
		return windows.CanSync(moment.IsManual)
	}
	var then v1alpha1.SyncWindows
	for _, window := range *windows {
		isOpen, err := isActive(*window, moment.At)
		if err != nil {
			return false, err
		}
		window := *window
		window.TimeZone = "UTC"
		window.Schedule, window.Duration = fmt.Sprintf("0 0 1 %d *", (time.Now().UTC().Month()+5)%12+1), "1m"
		if isOpen {
			window.Schedule, window.Duration = "* * * * *", "24h"
		}
		then = append(then, &window)
	}
	return then.CanSync(moment.IsManual)
}

//go:linkname isActive github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1.SyncWindow.active
func isActive(window v1alpha1.SyncWindow, at time.Time) (bool, error)
