// Package ocflspec has the names and the small files of OCFL 1.1 (ocfl.io/1.1/spec): of a storage root, and of an
// object. The digests are sha512.
//
//	for name, text := range ocflspec.RootFiles() { … }
package ocflspec

import (
	"bytes"
	"encoding/json"
)

// The names of files, and of the layout of the storage root.
const (
	RootDeclaration   = "0=ocfl_1.1"
	ObjectDeclaration = "0=ocfl_object_1.1"
	InventoryName     = "inventory.json"
	SidecarName       = "inventory.json.sha512"
	LayoutExtension   = "0003-hash-and-id-n-tuple-storage-layout"
)

// DeclarationText is the content of an object's declaration (section 3.3).
const DeclarationText = "ocfl_object_1.1\n"

// Sidecar is the content of the file beside an inventory, which has its digest (section 3.7).
func Sidecar(digest string) []byte { return []byte(digest + " " + InventoryName + "\n") }

// RootFiles are the files of an empty storage root, by their names (sections 4.1 and 4.4).
func RootFiles() map[string][]byte {
	layout, _ := json.MarshalIndent(map[string]string{"extension": LayoutExtension,
		"description": "sha256 of the object's id in three tuples of three characters, then the encoded id"}, "", "  ")
	config, _ := json.MarshalIndent(map[string]any{"extensionName": LayoutExtension,
		"digestAlgorithm": "sha256", "tupleSize": 3, "numberOfTuples": 3}, "", "  ")
	return map[string][]byte{
		RootDeclaration:    []byte("ocfl_1.1\n"),
		"ocfl_layout.json": append(bytes.TrimSpace(layout), '\n'),
		"extensions/" + LayoutExtension + "/config.json": append(bytes.TrimSpace(config), '\n'),
	}
}
