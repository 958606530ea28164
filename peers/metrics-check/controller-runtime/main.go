// Prints the metrics that controller-runtime registers: names, types, labels and buckets.
//
// Only families with samples are printed, so it runs a controller that reconciles once.
package main

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/metrics"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"metrics-check/family"
)

func main() {
	log.SetLogger(logr.Discard())
	metrics.RequestResult.Increment(context.Background(), "200", "GET", "127.0.0.1:6443")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	again := false
	reconciler := func(context.Context, reconcile.Request) (reconcile.Result, error) {
		// The time of a reconcile is recorded when it has returned: the second one shows that the first has.
		if again {
			cancel()
		}
		again = true
		return reconcile.Result{RequeueAfter: time.Millisecond}, nil
	}
	running, err := controller.NewUnmanaged("maps", controller.Options{Reconciler: reconcile.Func(reconciler)})
	family.Check(err)
	one := func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}})
		return nil
	}
	family.Check(running.Watch(source.Func(one)))
	family.Check(running.Start(ctx))
	family.Print("controller-runtime", registry.Registry, "rest_client_", "workqueue_", "controller_runtime_", "leader_election_")
}
