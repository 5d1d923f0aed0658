package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvlib/pkg/nvlib/info"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// A board stands for a GPU or an instance; what is not answered here is not asked.
type board struct {
	device.Device
	name       string
	uuid       string
	isInstance bool
}

func (b board) GetName() (string, nvml.Return)                    { return b.name, nvml.SUCCESS }
func (b board) IsMigEnabled() (bool, error)                       { return false, nil }
func (b board) GetUUID() (string, nvml.Return)                    { return b.uuid, nvml.SUCCESS }
func (b board) GetMinorNumber() (int, nvml.Return)                { return 0, nvml.SUCCESS }
func (b board) GetPciInfo() (nvml.PciInfo, nvml.Return)           { return nvml.PciInfo{}, nvml.SUCCESS }
func (b board) GetMemoryInfo() (nvml.Memory, nvml.Return)         { return nvml.Memory{}, nvml.SUCCESS }
func (b board) GetCudaComputeCapability() (int, int, nvml.Return) { return 8, 0, nvml.SUCCESS }

// A library is NVML as the plugin sees it through go-nvlib.
type library struct {
	device.Interface
	boards []board
}

func (l *library) nvml() nvml.Interface {
	return &mock.Interface{
		InitFunc:     func() nvml.Return { return nvml.SUCCESS },
		ShutdownFunc: func() nvml.Return { return nvml.SUCCESS },
	}
}

func (l *library) VisitDevices(visit func(int, device.Device) error) error {
	for i, board := range l.boards {
		if err := visit(i, board); err != nil {
			return err
		}
	}
	return nil
}

// VisitMigProfiles goes through the profiles in the order of NVML's ids, by which a plain one comes before its
// variants: https://github.com/NVIDIA/go-nvml/blob/v0.13.0-1/pkg/nvml/const.go (GPU_INSTANCE_PROFILE_*)
func (l *library) VisitMigProfiles(visit func(device.MigProfile) error) error {
	var profiles []profile
	for _, board := range l.boards {
		if board.isInstance {
			plain := board.name[:strings.IndexFunc(board.name+"+", func(r rune) bool { return r == '+' || r == '-' })]
			profiles = append(profiles, profile(plain), profile(board.name))
		}
	}
	slices.SortFunc(profiles, func(a, b profile) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), strings.Compare(string(a), string(b)))
	})
	for _, profile := range slices.Compact(profiles) {
		if err := visit(profile); err != nil {
			return err
		}
	}
	return nil
}

// A profile is known by its name; the instances that mig-parted makes have all of their compute slices.
type profile string

var variants = []string{"", "+me", "+gfx", "-me", "+me.all"}

func (p profile) order() int {
	return slices.Index(variants, strings.TrimLeft(string(p), "0123456789cgb."))
}

func (p profile) String() string                      { return string(p) }
func (p profile) Equals(other device.MigProfile) bool { return string(p) == other.String() }
func (p profile) Matches(name string) bool            { return string(p) == name }
func (p profile) GetInfo() device.MigProfileInfo {
	var result device.MigProfileInfo
	if _, err := fmt.Sscanf(string(p), "%dc.%dg.%dgb", &result.C, &result.G, &result.GB); err != nil {
		fmt.Sscanf(string(p), "%dg.%dgb", &result.G, &result.GB)
		result.C = result.G
	}
	return result
}

// withNvml says that NVML is there.
type withNvml struct{ info.Interface }

func (withNvml) HasNvml() (bool, string) { return true, "" }
