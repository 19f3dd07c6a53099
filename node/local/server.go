package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/kilter-dev/kilter/device"
)

// Agent is what the server answers from.
type Agent interface {
	Report(ctx context.Context) (Report, error)
	Health() Health
}

// Faults makes simulated devices sick and well. The id is as a person wrote
// it; a NotFoundError says that no such device is there.
type Faults interface {
	Fail(id, reason string) (device.ID, error)
	Heal(id string) (device.ID, error)
}

const (
	longestRequest = 64 << 10
	requestTime    = 10 * time.Second
	// stopPatience is how long answers under way may take at the end.
	stopPatience = time.Second
)

// Server is the agent's side of the socket.
type Server struct {
	socket string
	agent  Agent
	faults Faults
	logger *slog.Logger
}

// NewServer returns a server for the socket. It listens in Run.
func NewServer(socket string, agent Agent, faults Faults, logger *slog.Logger) *Server {
	return &Server{socket: socket, agent: agent, faults: faults, logger: logger}
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	listener, err := s.listen()
	if err != nil {
		return fmt.Errorf("open the agent's socket: %w", err)
	}
	server := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: requestTime,
		ReadTimeout:       requestTime,
		ErrorLog:          slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve the agent's socket: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		_ = server.Close()
	}
	<-served
	return nil
}

// listen makes the socket, open to its owner only, as is the folder if it has
// to be made. A socket that is there was left by an agent before: the one that
// runs holds the lock.
func (s *Server) listen() (net.Listener, error) {
	folder := filepath.Dir(s.socket)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	if err := os.Remove(s.socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	listener, err := net.Listen("unix", s.socket)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(s.socket, 0o600); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/devices", s.devices)
	mux.HandleFunc("POST /v1/faults", s.fail)
	mux.HandleFunc("DELETE /v1/faults/{id}", s.heal)
	mux.HandleFunc("GET /v1/health", s.health)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, http.StatusNotFound, errorBody{fmt.Sprintf("the agent knows no %s %s; it may be of another version", r.Method, r.URL.Path)})
	})
	return mux
}

func (s *Server) devices(w http.ResponseWriter, r *http.Request) {
	report, err := s.agent.Report(r.Context())
	if err != nil {
		s.answer(w, http.StatusInternalServerError, errorBody{err.Error()})
		return
	}
	s.answer(w, http.StatusOK, report)
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	health := s.agent.Health()
	status := http.StatusOK
	if !health.Ready {
		status = http.StatusServiceUnavailable
	}
	s.answer(w, status, health)
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request) {
	var fault Fault
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, longestRequest))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&fault)
	if err == nil && decoder.Decode(&struct{}{}) != io.EOF {
		err = errors.New("more than one object")
	}
	switch {
	case err != nil:
		s.answer(w, http.StatusBadRequest, errorBody{fmt.Sprintf(`want {"id": …, "reason": …}: %v`, err)})
	case fault.Reason == "":
		s.answer(w, http.StatusBadRequest, errorBody{"a fault needs a reason"})
	default:
		id, err := s.faults.Fail(fault.ID, fault.Reason)
		s.faultResult(w, id, err)
	}
}

func (s *Server) heal(w http.ResponseWriter, r *http.Request) {
	id, err := s.faults.Heal(r.PathValue("id"))
	s.faultResult(w, id, err)
}

func (s *Server) faultResult(w http.ResponseWriter, id device.ID, err error) {
	var notFound *NotFoundError
	switch {
	case err == nil:
		s.answer(w, http.StatusOK, FaultResult{id})
	case errors.As(err, &notFound):
		s.answer(w, http.StatusNotFound, errorBody{err.Error()})
	default:
		s.answer(w, http.StatusInternalServerError, errorBody{err.Error()})
	}
}

func (s *Server) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.logger.Debug("an answer was not taken", "error", err)
	}
}
