// Package pki makes the keys and certificates of a one-machine cluster: one
// authority, and a certificate for each component that says who it is.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// Valid for ten years: a cluster on one machine is thrown away long before,
// and nobody is there to renew anything.
const lifetime = 10 * 365 * 24 * time.Hour

// Subject is who a certificate is for. Kubernetes reads the user from Name
// and the user's groups from Groups.
type Subject struct {
	Name   string
	Groups []string
	// Addresses and Hosts are what a server is reached at; a certificate
	// without them is a client's only.
	Addresses []netip.Addr
	Hosts     []string
}

// Authority signs certificates, and keeps them and itself in a folder.
type Authority struct {
	folder string
	cert   *x509.Certificate
	key    crypto.Signer
}

// Open reads the authority in the folder, or makes a new one there.
func Open(folder string) (*Authority, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for certificates: %w", err)
	}
	a := &Authority{folder: folder}
	if cert, key, err := read(a.CertFile("ca"), a.KeyFile("ca")); err == nil {
		a.cert, a.key = cert, key
		return a, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: "kilter-cluster"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(lifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	a.key, a.cert = key, template
	if err := a.write("ca", template, key); err != nil {
		return nil, err
	}
	a.cert, _, err = read(a.CertFile("ca"), a.KeyFile("ca"))
	return a, err
}

// CertFile is where the certificate of that name is.
func (a *Authority) CertFile(name string) string { return filepath.Join(a.folder, name+".crt") }

// KeyFile is where the key of that name is.
func (a *Authority) KeyFile(name string) string { return filepath.Join(a.folder, name+".key") }

// Issue makes sure that there is a certificate of that name for the subject.
func (a *Authority) Issue(name string, subject Subject) error {
	if cert, _, err := read(a.CertFile(name), a.KeyFile(name)); err == nil && cert.CheckSignatureFrom(a.cert) == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: subject.Name, Organization: subject.Groups},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		DNSNames:     subject.Hosts,
	}
	for _, address := range subject.Addresses {
		template.IPAddresses = append(template.IPAddresses, net.IP(address.AsSlice()))
	}
	if len(template.IPAddresses)+len(template.DNSNames) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	return a.write(name, template, key)
}

// SigningKey makes sure that there is a bare key of that name; the API server
// signs service accounts' tokens with it.
func (a *Authority) SigningKey(name string) error {
	if _, err := os.Stat(a.KeyFile(name)); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return writeKey(a.KeyFile(name), key)
}

func (a *Authority) write(name string, template *x509.Certificate, key *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("sign the certificate %s: %w", name, err)
	}
	// The key first: a certificate without its key would be taken for done.
	if err := writeKey(a.KeyFile(name), key); err != nil {
		return err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return os.WriteFile(a.CertFile(name), block, 0o600)
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

func read(certFile, keyFile string) (*x509.Certificate, crypto.Signer, error) {
	certPEM, err := os.ReadFile(certFile)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, nil, err
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, nil, fmt.Errorf("%s or %s is not PEM", certFile, keyFile)
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", certFile, err)
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", keyFile, err)
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, nil, fmt.Errorf("%s does not belong to %s", keyFile, certFile)
	}
	return cert, key, nil
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // the kernel's random source does not fail
	}
	return n
}
