// Command fencer-controlplane is a whole Kubernetes control plane in one
// binary, for fencer's end-to-end tests: etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler, unchanged, with the flags of the
// official binaries; and kubectl, for comparisons.
//
// The component is chosen by the name the binary is called by (a symlink), or
// by its first argument:
//
//	fencer-controlplane kube-apiserver --help
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	// What the official mains import for their side effects.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

func kube(newCommand func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(newCommand())) }
}

var components = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          kube(apiserver.NewAPIServerCommand),
	"kube-controller-manager": kube(controllermanager.NewControllerManagerCommand),
	"kubectl":                 kube(kubectl.NewDefaultKubectlCommand),
	"kube-scheduler":          kube(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
}

func main() {
	if run, ok := components[filepath.Base(os.Args[0])]; ok {
		run()
		return
	}
	if len(os.Args) > 1 {
		if run, ok := components[os.Args[1]]; ok {
			os.Args = slices.Delete(os.Args, 0, 1)
			run()
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: fencer-controlplane etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubectl [flags]")
	os.Exit(2)
}
