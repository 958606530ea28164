// Prints the metrics that client-go records and component-base registers: names, types, labels and buckets.
//
// Only families with samples are printed, so it uses an informer, a queue, a candidate of a leader election, and the
// hooks of the REST client.
package main

import (
	"context"
	"errors"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/metrics"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"

	"metrics-check/family"
)

func main() {
	restClient()
	queue()
	informer()
	leader()
	family.Print("client-go", legacyregistry.DefaultGatherer, "rest_client_", "workqueue_", "informer_", "leader_election_")
}

func restClient() {
	ctx, host := context.Background(), "127.0.0.1:6443"
	metrics.RequestLatency.Observe(ctx, "GET", url.URL{Host: host}, time.Second)
	metrics.ResolverLatency.Observe(ctx, host, time.Second)
	metrics.RequestSize.Observe(ctx, "GET", host, 1)
	metrics.ResponseSize.Observe(ctx, "GET", host, 1)
	metrics.RateLimiterLatency.Observe(ctx, "GET", url.URL{Host: host}, time.Second)
	metrics.RequestResult.Increment(ctx, "200", "GET", host)
	metrics.RequestRetry.IncrementRetry(ctx, "500", "GET", host)
	metrics.ExecPluginCalls.Increment(0, "no_error")
	metrics.TransportCacheEntries.Observe(1)
	metrics.TransportCreateCalls.Increment("hit")
	metrics.TransportCAReloads.Increment("success", "ca_changed")
	metrics.TransportCertRotationGCCalls.Increment()
	metrics.TransportCacheGCCalls.Increment("deleted")
}

func queue() {
	config := workqueue.TypedRateLimitingQueueConfig[string]{Name: "work"}
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[string](), config)
	queue.Add("key")
	key, _ := queue.Get()
	queue.Done(key)
	queue.AddRateLimited(key)
}

func informer() {
	name, err := cache.NewInformerName("pods")
	family.Check(err)
	id := name.WithResource(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	fifo := cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
		KeyFunction:  cache.MetaNamespaceKeyFunc,
		KnownObjects: cache.NewStore(cache.MetaNamespaceKeyFunc),
		Identifier:   id,
	})
	family.Check(fifo.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: "1"}}))
	// A store without an explicit provider has none; only the layer below it uses the global one.
	cache.NewThreadSafeStore(cache.Indexers{}, cache.Indices{}, cache.WithThreadSafeStoreMetrics(id, nil)).Bookmark("1")
}

func leader() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	lock := &lock{renewed: cancel}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:          lock,
		Name:          "operator",
		LeaseDuration: 3 * time.Second,
		RenewDeadline: 2 * time.Second,
		RetryPeriod:   100 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: func() {},
		},
	})
}

// lock is a Lease in memory. Its first update fails, which makes the candidate take the slow path.
type lock struct {
	record  *resourcelock.LeaderElectionRecord
	updates int
	renewed func()
}

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "operator")
	}
	return l.record, []byte(l.record.RenewTime.String()), nil
}

func (l *lock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.record = &record
	return nil
}

func (l *lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.updates++
	if l.updates == 1 {
		return errors.New("conflict")
	}
	l.record = &record
	l.renewed()
	return nil
}

func (l *lock) RecordEvent(string) {}
func (l *lock) Identity() string   { return "candidate" }
func (l *lock) Describe() string   { return "operator" }
