package benchtrace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kilter-dev/kilter/place/trace"
)

// The files of the trace.
const (
	nodeFile      = "openb_node_list_gpu_node.csv"
	podPrefix     = "openb_pod_list_"
	podFiles      = podPrefix + "*.csv"
	publishedFile = "fgd_published_table.csv"
	source        = "https://github.com/alibaba/clusterdata, folder cluster-trace-gpu-v2023/csv"
)

// named is a trace and its name, such as "default".
type named struct {
	name string
	trace.Trace
}

// load reads all traces of the folder, in the order of names, "default" first.
func load(folder string) ([]named, error) {
	missing := func(what string) error {
		return fmt.Errorf("%s has no %s: get the trace from %s", folder, what, source)
	}
	machines, err := readFile(filepath.Join(folder, nodeFile), trace.ReadMachines)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(nodeFile)
	}
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(folder, podFiles))
	if err != nil {
		return nil, fmt.Errorf("list the traces: %w", err)
	}
	if len(files) == 0 {
		return nil, missing(podFiles)
	}
	var traces []named
	for _, file := range files {
		pods, err := readFile(file, trace.ReadPods)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), podPrefix), ".csv")
		t := named{name, trace.Trace{Machines: machines, Pods: pods}}
		if err := t.Check(); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		traces = append(traces, t)
	}
	slices.SortFunc(traces, func(a, b named) int {
		if (a.name == "default") != (b.name == "default") {
			if a.name == "default" {
				return -1
			}
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	return traces, nil
}

func readFile[T any](path string, read func(io.Reader) ([]T, error)) ([]T, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	defer file.Close()
	rows, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rows, nil
}

// published is the paper's figure by trace, policy and arrived percentage.
type published map[publishedKey]float64

type publishedKey struct {
	trace, policy string
	arrived       int
}

// loadPublished reads the paper's figures, if the folder has them.
func loadPublished(folder string) (published, error) {
	path := filepath.Join(folder, publishedFile)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the published figures: %w", err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(rows) == 0 || len(rows[0]) < 4 ||
		strings.Join(rows[0][:4], ",") != "trace,policy,arrived_pct,alloc_pct_mean" {
		return nil, fmt.Errorf("%s: the first columns are not trace, policy, arrived_pct and alloc_pct_mean", path)
	}
	figures := published{}
	for i, row := range rows[1:] {
		arrived, err1 := strconv.Atoi(row[2])
		allocated, err2 := strconv.ParseFloat(row[3], 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, i+2, err)
		}
		// The policies are numbered: "06-FGD".
		_, name, _ := strings.Cut(row[1], "-")
		figures[publishedKey{strings.TrimPrefix(row[0], podPrefix), name, arrived}] = allocated
	}
	return figures, nil
}
