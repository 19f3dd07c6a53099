package trace

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
)

func TestChurn(t *testing.T) {
	trace := smallTrace(3)
	for _, make := range []Make{BestFit, FGD, Kilter} {
		var low *Service
		for _, load := range []float64{0.3, 2} {
			got, err := trace.Churn(context.Background(), make, 7, load)
			if err != nil {
				t.Fatal(err)
			}
			again, err := trace.Churn(context.Background(), make, 7, load)
			if err != nil || !reflect.DeepEqual(got, again) {
				t.Fatalf("the second time gives %+v, %v; the first gave %+v", again, err, got)
			}
			if got.Offered < 60*load || got.Offered > 140*load || got.Served > min(100, got.Offered+1e-9) {
				t.Errorf("load %v: offered %.1f, served %.1f", load, got.Offered, got.Served)
			}
			if !slices.IsSorted(got.Waits) || got.Waits[0] < 0 || got.Waits[len(got.Waits)-1] > window {
				t.Errorf("waits from %v to %v", got.Waits[0], got.Waits[len(got.Waits)-1])
			}
			if low == nil {
				low = got
				// Nobody waits long where there is room.
				if got.Served < got.Offered-5 {
					t.Errorf("at load 0.3 only %.1f of %.1f was served", got.Served, got.Offered)
				}
			} else if got.Served < low.Served || got.Waiting == 0 {
				t.Errorf("at load 2 %.1f was served and %d wait; at 0.3 it was %.1f", got.Served, got.Waiting, low.Served)
			}
		}
	}
}

func TestChurnNeedsTimes(t *testing.T) {
	trace := smallTrace(3)
	for i := range trace.Pods {
		trace.Pods[i].Created, trace.Pods[i].Deleted = 0, 0
	}
	if _, err := trace.Churn(context.Background(), FGD, 1, 1); !errors.Is(err, ErrNoTimes) {
		t.Errorf("got %v, want ErrNoTimes", err)
	}
}
