package console

import "archivist/pkg/kernel/access"

// onDoctor is what the doctor can do.
var onDoctor = deedKind{Page: "doctor", Path: "/v1/operations", Deeds: []deed{
	{Name: "doctor", Title: "Check everything", Role: access.Operator, To: "doctor/{id}",
		Means: "All rows and files of the archive are read, and compared with what they " +
			"promise. Nothing is changed.",
		Done: "The doctor has begun.", Command: "archivist doctor"},
	{Name: "repair", Action: "doctor", Title: "Check, and repair what can be repaired without loss",
		Role: access.Administrator, To: "doctor/{id}", Loses: true,
		Means: "What is found is repaired if nothing can be lost by it. The findings say what " +
			"is left for a person.",
		Done: "The doctor has begun.", Fields: []asking{{Name: "repair", Value: "true",
			Option: "--repair"}},
		Command: "archivist doctor"},
}}
