// A client-go candidate for the tests in peers/real-kubernetes/tests/leader_election, which hand over a Lease between
// it and our candidates.
//
// It prints lines: `leader IDENTITY` for each leader that it observes, `leads`, `ended`. SIGTERM or the end of
// standard input stops it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the server and how to get in")
	name := flag.String("lease", "", "the Lease, in the namespace default")
	identity := flag.String("identity", "", "the name of the candidate")
	leaseDuration := flag.Duration("lease-duration", 15*time.Second, "")
	renewDeadline := flag.Duration("renew-deadline", 10*time.Second, "")
	retryPeriod := flag.Duration("retry-period", 2*time.Second, "")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Leases are read and written as JSON.
	config.ContentType = "application/json"
	config.Timeout = *renewDeadline / 2

	stop, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(2)
	}()
	leaderelection.RunOrDie(stop, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: *name},
			Client:     kubernetes.NewForConfigOrDie(config).CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: *identity},
		},
		LeaseDuration:   *leaseDuration,
		RenewDeadline:   *renewDeadline,
		RetryPeriod:     *retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { fmt.Println("leads") },
			OnStoppedLeading: func() { fmt.Println("ended") },
			OnNewLeader:      func(identity string) { fmt.Println("leader", identity) },
		},
	})
}
