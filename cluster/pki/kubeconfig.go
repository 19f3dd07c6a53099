package pki

import (
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig writes a kubeconfig for the certificate of that name. It holds
// the key itself, so that the one file suffices, and is readable by its owner
// alone.
func (a *Authority) Kubeconfig(file, server, name string) error {
	ca, err := os.ReadFile(a.CertFile("ca"))
	if err != nil {
		return err
	}
	cert, err := os.ReadFile(a.CertFile(name))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(a.KeyFile(name))
	if err != nil {
		return err
	}
	config := api.NewConfig()
	config.Clusters["kilter"] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts["kilter"] = &api.Context{Cluster: "kilter", AuthInfo: name}
	config.CurrentContext = "kilter"
	return clientcmd.WriteToFile(*config, file)
}
