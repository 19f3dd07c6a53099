package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WholeGPU is a GPU in the trace's unit.
const WholeGPU = 1000

// Machine is one node of the trace.
type Machine struct {
	Name      string
	CPUMilli  int64
	MemoryMiB int64
	GPUs      int
	Model     string // of all its GPUs
}

// Pod is one row of a trace's Pod list.
type Pod struct {
	Name      string
	CPUMilli  int64
	MemoryMiB int64
	GPUs      int
	GPUMilli  int64  // of each of the GPUs; less than WholeGPU only for one GPU
	Models    string // the models that will do, such as "T4|P100"; empty: any

	// Created and Deleted are seconds; both are 0 in a list without times.
	Created, Deleted int64
}

// Milli is all the GPU that the Pod asks for.
func (p *Pod) Milli() int64 { return int64(p.GPUs) * p.GPUMilli }

// ReadMachines reads a node list: a header with sn, cpu_milli, memory_mib,
// gpu and model, then a row for each machine.
func ReadMachines(from io.Reader) ([]Machine, error) {
	var machines []Machine
	err := readRows(from, []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}, func(r *row) {
		machines = append(machines, Machine{
			Name:      r.text("sn"),
			CPUMilli:  r.number("cpu_milli"),
			MemoryMiB: r.number("memory_mib"),
			GPUs:      int(r.number("gpu")),
			Model:     r.text("model"),
		})
	})
	return machines, err
}

// ReadPods reads a Pod list: a header with name, cpu_milli, memory_mib,
// num_gpu and gpu_milli, then a row for each Pod. The columns gpu_spec,
// creation_time and deletion_time are used when they are there.
func ReadPods(from io.Reader) ([]Pod, error) {
	var pods []Pod
	err := readRows(from, []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}, func(r *row) {
		pod := Pod{
			Name:      r.text("name"),
			CPUMilli:  r.number("cpu_milli"),
			MemoryMiB: r.number("memory_mib"),
			GPUs:      int(r.number("num_gpu")),
			GPUMilli:  r.number("gpu_milli"),
			Models:    strings.Trim(r.text("gpu_spec"), "|"),
		}
		if r.has("creation_time") && r.has("deletion_time") {
			pod.Created, pod.Deleted = r.number("creation_time"), r.number("deletion_time")
		}
		switch {
		case (pod.GPUs == 0) != (pod.GPUMilli == 0):
			r.fail(fmt.Errorf("%d GPUs of %d thousandths each", pod.GPUs, pod.GPUMilli))
		case pod.GPUMilli > WholeGPU, pod.GPUs > 1 && pod.GPUMilli != WholeGPU:
			r.fail(fmt.Errorf("%d GPUs of %d thousandths each: only one GPU can be shared", pod.GPUs, pod.GPUMilli))
		}
		pods = append(pods, pod)
	})
	return pods, err
}

// row is a line under its header.
type row struct {
	columns map[string]int
	fields  []string
	err     error
}

func readRows(from io.Reader, needed []string, add func(*row)) error {
	reader := csv.NewReader(from)
	reader.ReuseRecord = true
	header, err := reader.Read()
	if err != nil {
		return fmt.Errorf("read the header: %w", err)
	}
	r := &row{columns: make(map[string]int, len(header))}
	for i, name := range header {
		r.columns[strings.TrimSpace(name)] = i
	}
	for _, name := range needed {
		if _, ok := r.columns[name]; !ok {
			return fmt.Errorf("the header has no column %q; it has %s", name, strings.Join(header, ", "))
		}
	}
	for {
		r.fields, err = reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		add(r)
		if r.err != nil {
			line, _ := reader.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, r.err)
		}
	}
}

func (r *row) has(name string) bool {
	i, ok := r.columns[name]
	return ok && r.fields[i] != ""
}

func (r *row) text(name string) string {
	if i, ok := r.columns[name]; ok {
		return strings.Clone(r.fields[i])
	}
	return ""
}

func (r *row) number(name string) int64 {
	n, err := strconv.ParseInt(r.fields[r.columns[name]], 10, 64)
	switch {
	case err != nil:
		r.fail(fmt.Errorf("%s: %w", name, err))
	case n < 0:
		r.fail(fmt.Errorf("%s is negative: %d", name, n))
	}
	return n
}

func (r *row) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}
