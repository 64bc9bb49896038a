package environ

import "strings"

// GoEnv reads go's own configuration file (go/env below the configuration
// folder) as NAME=VALUE pairs for [Input.Defaults], which passes of them what
// it would pass of the caller's environment. Lines that are none are left out.
func GoEnv(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		name, _, ok := strings.Cut(line, "=")
		if ok && validName(name) && (strings.HasPrefix(name, "GO") || name == "CGO_ENABLED") {
			out = append(out, line)
		}
	}
	return out
}

// PipConf reads where pip gets packages and certificates from a configuration
// file of pip's, as NAME=VALUE pairs for [Input.Defaults]. Credentials are
// still in them; Build takes them out. A key in [install] beats one in
// [global]; other sections and keys are left out.
func PipConf(text string) []string {
	keys := [...]string{"index-url", "extra-index-url", "find-links", "trusted-host", "cert", "timeout"}
	names := [...]string{
		"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_TRUSTED_HOST", "PIP_CERT", "PIP_DEFAULT_TIMEOUT",
	}
	var global, install [len(keys)]string
	var open *string // the value that an indented line continues
	section := &global
	known := false
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		switch {
		case bare == "":
			open = nil
			continue
		case bare[0] == '#' || bare[0] == ';':
			continue
		case (line[0] == ' ' || line[0] == '\t') && open != nil:
			*open = strings.TrimSpace(*open + " " + bare)
			continue
		case bare[0] == '[':
			name, _, _ := strings.Cut(bare[1:], "]")
			known, open, section = name == "global" || name == "install", nil, &global
			if name == "install" {
				section = &install
			}
			continue
		}
		open = nil
		i := strings.IndexAny(bare, "=:")
		if !known || i < 0 {
			continue
		}
		key := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(bare[:i])), "_", "-")
		for k := range keys {
			if keys[k] == key {
				open = &section[k]
				*open = strings.TrimSpace(bare[i+1:])
			}
		}
	}
	var out []string
	for k, name := range names {
		v := install[k]
		if v == "" {
			v = global[k]
		}
		if v != "" {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// Npmrc returns a copy of a user's npm configuration that holds only where
// packages come from and a few switches, without credentials. It is what the
// file that npm_config_userconfig names should hold inside; scopes' registries
// cannot travel in the environment.
//
// A line whose value takes something from a variable is left out: inside, the
// variable is not the caller's.
func Npmrc(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		key = strings.TrimSpace(key)
		value = strings.Trim(strings.TrimSpace(value), `"`)
		switch {
		case key == "registry", scopeRegistry(key):
			value, _, ok = cleanURL(value)
		case key == "cafile":
			ok = plainPath(value) && !strings.Contains(value, "${")
		default:
			ok = npmSwitch(key) && (value == "true" || value == "false")
		}
		if ok {
			b.WriteString(key + "=" + value + "\n")
		}
	}
	return b.String()
}

// scopeRegistry reports whether key is @scope:registry.
func scopeRegistry(key string) bool {
	scope, ok := strings.CutSuffix(key, ":registry")
	if !ok || len(scope) < 2 || scope[0] != '@' {
		return false
	}
	for i := 1; i < len(scope); i++ {
		if c := scope[i]; !letter(c) && !digit(c) && c != '-' && c != '_' && c != '.' && c != '~' {
			return false
		}
	}
	return true
}

// npmSwitch names the settings of npm that only describe how it installs.
func npmSwitch(key string) bool {
	switch key {
	case "audit", "fund", "engine-strict", "legacy-peer-deps", "prefer-offline", "progress", "save-exact",
		"strict-peer-dependencies", "strict-ssl", "ignore-scripts", "update-notifier":
		return true
	}
	return false
}
