// Runs NodeFeatureRules on nodes' features as nfd-master does.
//
// Standard input is a JSON request, standard output the list of its nodes' labels and taints.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
	"sigs.k8s.io/node-feature-discovery/pkg/apis/nfd/nodefeaturerule"
	"sigs.k8s.io/node-feature-discovery/pkg/apis/nfd/validate"
)

type request struct {
	Rules []v1alpha1.NodeFeatureRule `json:"rules"`
	Nodes []v1alpha1.Features        `json:"nodes"`
	// What the master's configuration allows besides of what it takes by default.
	ExtraLabelNs []string `json:"extraLabelNs"`
	EnableTaints bool     `json:"enableTaints"`
}

type answer struct {
	Labels map[string]string `json:"labels"`
	Taints []corev1.Taint    `json:"taints"`
}

func main() {
	var request request
	if err := json.NewDecoder(os.Stdin).Decode(&request); err != nil {
		log.Fatal(err)
	}
	slices.SortFunc(request.Rules, func(a, b v1alpha1.NodeFeatureRule) int { return cmp.Compare(a.Name, b.Name) })
	answers := make([]answer, len(request.Nodes))
	for i := range request.Nodes {
		var err error
		if answers[i], err = request.label(&request.Nodes[i]); err != nil {
			log.Fatal(err)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		log.Fatal(err)
	}
}

// label follows processNodeFeatureRule, filterFeatureLabel and filterTaints; where they log and go on, it fails:
// https://github.com/kubernetes-sigs/node-feature-discovery/blob/v0.18.3/pkg/nfd-master/nfd-master.go
func (r *request) label(features *v1alpha1.Features) (answer, error) {
	result := answer{Labels: map[string]string{}, Taints: []corev1.Taint{}}
	for _, object := range r.Rules {
		for _, rule := range object.Spec.Rules {
			output, err := nodefeaturerule.Execute(&rule, features, true)
			if err != nil {
				return answer{}, fmt.Errorf("%s: %s: %w", object.Name, rule.Name, err)
			}
			maps.Copy(result.Labels, output.Labels)
			result.Taints = append(result.Taints, output.Taints...)
			features.InsertAttributeFeatures(v1alpha1.RuleBackrefDomain, v1alpha1.RuleBackrefFeature, output.Labels)
			features.InsertAttributeFeatures(v1alpha1.RuleBackrefDomain, v1alpha1.RuleBackrefFeature, output.Vars)
		}
	}
	for name, value := range result.Labels {
		namespace, _, _ := strings.Cut(name, "/")
		err := validate.Label(name, value)
		if errors.Is(err, validate.ErrNSNotAllowed) && slices.Contains(r.ExtraLabelNs, namespace) {
			err = nil
		}
		if err != nil {
			return answer{}, fmt.Errorf("label %s=%s: %w", name, value, err)
		}
	}
	for i := range result.Taints {
		if err := validate.Taint(&result.Taints[i]); err != nil {
			return answer{}, fmt.Errorf("taint %s: %w", result.Taints[i].Key, err)
		}
	}
	if !r.EnableTaints {
		result.Taints = []corev1.Taint{}
	}
	return result, nil
}
