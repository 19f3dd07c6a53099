package pki

import (
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestCertificatesAreWhoTheySay(t *testing.T) {
	folder := t.TempDir()
	authority, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	server := Subject{Name: "kube-apiserver", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Hosts: []string{"kubernetes"}}
	if err := authority.Issue("server", server); err != nil {
		t.Fatal(err)
	}
	if err := authority.Issue("client", Subject{Name: "system:node:a", Groups: []string{"system:nodes"}}); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.cert)
	serverCert, _, err := read(authority.CertFile("server"), authority.KeyFile("server"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kubernetes", "10.0.0.1"} {
		if _, err := serverCert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("as %s: %v", name, err)
		}
	}
	clientCert, _, err := read(authority.CertFile("client"), authority.KeyFile("client"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clientCert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if _, err := clientCert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err == nil {
		t.Error("a client's certificate serves")
	}
	if clientCert.Subject.CommonName != "system:node:a" || clientCert.Subject.Organization[0] != "system:nodes" {
		t.Errorf("the client is %v", clientCert.Subject)
	}
}

func TestKeysAreTheOwnersAlone(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "pki")
	authority, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Issue("admin", Subject{Name: "admin"}); err != nil {
		t.Fatal(err)
	}
	if err := authority.SigningKey("tokens"); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(folder, "kubeconfig")
	if err := authority.Kubeconfig(config, "https://10.0.0.1", "admin"); err != nil {
		t.Fatal(err)
	}
	if _, err := clientcmd.LoadFromFile(config); err != nil {
		t.Error(err)
	}
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", entry.Name(), info.Mode(), err)
		}
	}
}

// A second Open must keep the authority, or every running process would
// distrust every other.
func TestOpenKeepsWhatIsThere(t *testing.T) {
	folder := t.TempDir()
	first, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Issue("a", Subject{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(first.CertFile("a"))
	second, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Issue("a", Subject{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(second.CertFile("a")); string(after) != string(before) {
		t.Error("the certificate was made anew")
	}
	// One that is cut off is.
	if err := os.WriteFile(second.CertFile("a"), before[:20], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := second.Issue("a", Subject{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := read(second.CertFile("a"), second.KeyFile("a")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(second.CertFile("ca"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(folder); err == nil {
		t.Error("a damaged authority is taken for none")
	}
}
