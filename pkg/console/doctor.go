package console

import (
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// doctor is the page of the doctor's examinations.
type doctor struct {
	Items []v1.Operation
	More  string
	Deeds []deedOffer
}

// showDoctor lists the examinations of the whole system, newest first, and offers another one.
func (c *Console) showDoctor(v *visit) (view, error) {
	page, err := v.api.OperationPage(v.Context(), v.field("cursor"))
	d := doctor{More: v.more("cursor", page.Cursor), Deeds: v.deedsOn("doctor", nil)}
	moving := false
	for _, o := range page.Items {
		if o.Action == v1.Doctor {
			d.Items = append(d.Items, o)
			moving = moving || o.State == v1.OperationRunning
		}
	}
	return view{Title: "Doctor", Body: d, Moving: moving, Command: "archivist doctor"}, err
}

// examination is the page of one examination.
type examination struct {
	v1.Operation
	Findings []v1.Finding
	More     string // the address of more of them
	Offers   []offer
	Deeds    []deedOffer
}

// showExamination shows how far an examination is, what it has found, and what repairs it.
func (c *Console) showExamination(v *visit) (view, error) {
	id := v.PathValue("id")
	one, err := v.api.Operation(v.Context(), id)
	if err != nil {
		return view{}, err
	}
	findings, err := pageOf[v1.Finding](v, parts("operations", id, "findings"), v.field("cursor"))
	x := examination{Operation: one, Findings: findings.Items, More: v.more("cursor", findings.Cursor),
		Offers: offers("operation", id, one.Actions)}
	if one.State == v1.OperationDone && one.Counts.Findings > one.Counts.Repaired && !one.Repair {
		x.Deeds = v.deedsOn("doctor", nil)
	}
	return view{Title: "Examination " + id, Body: x, Moving: one.State == v1.OperationRunning,
		Command: "archivist operation show " + id,
		Said: "The examination is " + one.State + ": " +
			terminal.Count(one.Counts.Findings, "finding") + "."}, err
}
