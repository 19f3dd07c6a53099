package trace

import (
	"slices"
	"strings"
	"testing"
)

func TestReadMachines(t *testing.T) {
	got, err := ReadMachines(strings.NewReader("sn,cpu_milli,memory_mib,gpu,model\nm-0,64000,262144,2,P100\n"))
	want := []Machine{{"m-0", 64000, 262144, 2, "P100"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestReadPods(t *testing.T) {
	const five = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
	const all = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
	for _, test := range []struct {
		name, text string
		want       Pod
	}{
		{"without times", five + "p,1000,2,1,460\n", Pod{Name: "p", CPUMilli: 1000, MemoryMiB: 2, GPUs: 1, GPUMilli: 460}},
		{"all columns", all + "p,1000,2,2,1000,T4|P100,LS,Running,5,9,6\n",
			Pod{Name: "p", CPUMilli: 1000, MemoryMiB: 2, GPUs: 2, GPUMilli: 1000, Models: "T4|P100", Created: 5, Deleted: 9}},
		{"no times in a row", all + "p,1000,2,0,0,,LS,Pending,,,\n", Pod{Name: "p", CPUMilli: 1000, MemoryMiB: 2}},
	} {
		got, err := ReadPods(strings.NewReader(test.text))
		if err != nil || len(got) != 1 || got[0] != test.want {
			t.Errorf("%s: got %+v, %v; want %+v", test.name, got, err, test.want)
		}
	}
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", "read the header"},
		{"another file", "a,b\n1,2\n", `no column "name"; it has a, b`},
		{"no number", five + "p,1,2,1,1000\nq,x,2,1,1000\n", "line 3: cpu_milli"},
		{"negative", five + "p,-1,2,1,1000\n", "line 2: cpu_milli is negative"},
		{"too much of a GPU", five + "p,1,2,1,1001\n", "line 2: 1 GPUs of 1001"},
		{"parts of two", five + "p,1,2,2,500\n", "only one GPU can be shared"},
		{"a part of none", five + "p,1,2,0,500\n", "0 GPUs of 500"},
		{"a short row", five + "p,1,2\n", "line 2"},
	} {
		if _, err := ReadPods(strings.NewReader(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error with %q", test.name, err, test.want)
		}
	}
}

func FuzzReadPods(f *testing.F) {
	f.Add("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,2,1,460\n")
	f.Add("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np,1,1,8,1000,A|B\n")
	f.Fuzz(func(t *testing.T, text string) {
		pods, err := ReadPods(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, p := range pods {
			if p.CPUMilli < 0 || p.MemoryMiB < 0 || p.GPUs < 0 || p.GPUMilli < 0 || p.GPUMilli > WholeGPU ||
				(p.GPUs == 0) != (p.GPUMilli == 0) {
				t.Errorf("accepted %+v", p)
			}
		}
	})
}
