package toolchain

import (
	"context"
	"os"
	"path/filepath"
)

// APITools are programs that work on the API's description and its page. All but Env are
// paths of files.
type APITools struct {
	Validator string   // openapi-spec-validator
	Linter    string   // Redocly's command line
	Generator string   // openapi-python-client
	Python    string   // with what a generated client needs
	Chromium  string   // for x86-64
	Axe       string   // the script of axe-core, which judges whether everybody can use a page
	Env       []string // of Chromium: where its libraries and fonts are
}

// InstallAPITools installs the tools of infra/toolchain/api. The paths are returned beside an
// error, too.
func (c Checkout) InstallAPITools(ctx context.Context) (APITools, error) {
	from, dir := c.Path("infra", "toolchain", "api"), c.Path(".local", "api")
	bin, browser := filepath.Join(dir, "venv", "bin"), filepath.Join(dir, "chromium")
	tools := APITools{
		Validator: filepath.Join(bin, "openapi-spec-validator"),
		Generator: filepath.Join(bin, "openapi-python-client"),
		Python:    filepath.Join(bin, "python"),
		Linter:    filepath.Join(dir, "node_modules", ".bin", "redocly"),
		Chromium:  filepath.Join(browser, "chromium"),
		Axe:       filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"),
		Env: []string{"LD_LIBRARY_PATH=" + filepath.Join(browser, "al2023", "lib"), "HOME=" +
			browser,
			"FONTCONFIG_FILE=" + filepath.Join(browser, "fonts.conf")},
	}

	wanted := filepath.Join(from, "requirements.txt")
	err := c.Once(filepath.Join(dir, "venv.done"), wanted, func() error {
		c.Say("installing the tools for the API's description (Python) …")
		return c.Venv(ctx, "python3", filepath.Join(dir, "venv"), wanted)
	})
	if err != nil {
		return tools, err
	}
	return tools, c.Once(filepath.Join(dir, "npm.done"), filepath.Join(from, "package-lock.json"),
		func() error {
			c.Say("installing Chromium and Redocly (npm ci) …")
			if err := c.npm(ctx, from, dir); err != nil {
				return err
			}
			return c.unpackChromium(ctx, dir, browser)
		})
}

// unpackChromium unpacks the Chromium of the npm package below dir into a folder. The package
// has it compressed, with its libraries, for Lambda's system. It needs a configuration of
// fonts of its own, so that pages look the same on every machine.
func (c Checkout) unpackChromium(ctx context.Context, dir, into string) error {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}

	fonts := `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>` +
		`<dir>` + filepath.Join(into, "fonts") +
		`</dir><cachedir>` + filepath.Join(into, "cache") + `</cachedir></fontconfig>`

	if err := os.WriteFile(filepath.Join(into, "fonts.conf"), []byte(fonts), 0o644); err != nil {
		return err
	}

	env := append(os.Environ(), "TMPDIR="+into)
	_, err := c.Run(ctx, dir, env, "node", c.Path("infra", "toolchain", "api", "unpack.mjs"))
	return err
}
