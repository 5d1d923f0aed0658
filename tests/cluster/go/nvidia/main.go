// Reads configurations as NVIDIA's MIG manager and device plugin do, and says what a node would publish.
//
// Standard input is a JSON list of requests, standard output the list of their answers.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/NVIDIA/mig-parted/pkg/types"
)

// A request has the text of one or both files; of a node it also says what labels and hardware it has.
type request struct {
	MigFile    *string `json:"migFile"`
	PluginFile *string `json:"pluginFile"`
	// What the operator sets in the plugin's environment; it overrides the file.
	MigStrategy string `json:"migStrategy"`
	MpsRoot     string `json:"mpsRoot"`
	Node        *node  `json:"node"`
}

type node struct {
	MigConfig string `json:"migConfig"`
	GPUs      int    `json:"gpus"`
	// PCI device and vendor, such as 0x20B210DE; files without device filters do not need it.
	DeviceID types.DeviceID `json:"deviceId"`
}

// An answer has what the node publishes, or why a file is refused.
type answer struct {
	Error     string         `json:"error"`
	Resources map[string]int `json:"resources,omitempty"`
}

func main() {
	var requests []request
	if err := json.NewDecoder(os.Stdin).Decode(&requests); err != nil {
		log.Fatal(err)
	}
	answers := make([]answer, len(requests))
	for i, request := range requests {
		resources, err := reply(request)
		if err != nil {
			answers[i].Error = err.Error()
		}
		answers[i].Resources = resources
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		log.Fatal(err)
	}
}

func reply(request request) (map[string]int, error) {
	config, err := readPluginFile(request.PluginFile, request.MigStrategy, request.MpsRoot)
	if err != nil {
		return nil, fmt.Errorf("device plugin: %w", err)
	}
	if request.MigFile == nil {
		return nil, nil
	}
	spec, err := readMigFile(*request.MigFile)
	if err != nil {
		return nil, fmt.Errorf("mig-parted: %w", err)
	}
	if request.Node == nil {
		return nil, nil
	}
	gpus, err := partition(spec, *request.Node)
	if err != nil {
		return nil, fmt.Errorf("mig-parted: %w", err)
	}
	resources, err := publish(config, gpus)
	if err != nil {
		return nil, fmt.Errorf("device plugin: %w", err)
	}
	return resources, nil
}

// inFile calls read with a file that holds text, since both programs read files by name.
func inFile[T any](text string, read func(path string) (T, error)) (T, error) {
	var none T
	file, err := os.CreateTemp("", "parsed-*.yaml")
	if err != nil {
		return none, err
	}
	defer os.Remove(file.Name())
	if _, err := file.WriteString(text); err != nil {
		return none, err
	}
	if err := file.Close(); err != nil {
		return none, err
	}
	return read(file.Name())
}
