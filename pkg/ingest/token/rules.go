package token

import (
	"context"
	"slices"

	"archivist/pkg/events/check"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/table"
)

// Rules are the rules of the rows of tokens.
var Rules = check.Rules{Kinds: []check.Kind{
	{PK: "TOKEN", SK: "TOKEN", Expires: true, Rule: checkToken},
	{PK: livingKey.PK, SK: livingKey.SK, Rule: checkLiving},
}}

// checkToken checks a token: what it is, its newest event, its places, and that an active one is among the active ones.
func checkToken(ctx context.Context, x *check.Row) error {
	var row Token
	if !x.Into(&row) {
		return nil
	}

	x.Subject = "token:" + row.ID
	unknown := func(text string) bool { _, err := access.Parse(text); return err != nil }
	if x.Key != subject(row.ID).Key() || !names.MatchString(row.Name) ||
		len(row.Sum) != len(digest("")) ||
		len(row.Grants) == 0 ||
		slices.ContainsFunc(row.Grants, unknown) {
		x.Add(
			"state",
			check.Restore,
			nil,
			"the row says that it is the token %s %q with the grants %q, and a hash of "+
				"%d characters",
			row.ID,
			row.Name,
			row.Grants,
			len(row.Sum),
		)
		return nil
	}

	should := row
	should.place()
	x.Placed(row.Head, should.Head, func(tx *table.Tx) { tx.Save(&should) })
	if row.State(x.Now()) == Active {
		if err := checkListed(ctx, x, &row); err != nil {
			return err
		}
	}
	return x.History(ctx, subject(row.ID), row.Version, "")
}

// checkListed checks that an active token is among the active ones, and that no other one has its name.
func checkListed(ctx context.Context, x *check.Row, row *Token) error {
	all, err := of(x).living(ctx)
	if err != nil {
		return err
	}

	switch other := all.named(row.Name); {
	case other == nil:
		x.Add("token-living", check.Repair, x.Making(&row.Head, func(tx *table.Tx) {
			all.Tokens = append(all.Tokens, one{row.ID, row.Name, row.Expires})
			tx.InsertOrSave(all)
		}), "it is active, and missing among the active tokens")
	case other.ID != row.ID:
		x.Add("token-living", "archivist token revoke "+row.ID+" --reason …", nil,
			"it is active, and so is the token %s with the same name %s", other.ID, row.Name)
	}
	return nil
}

// checkLiving checks that the active tokens are tokens, and active.
func checkLiving(ctx context.Context, x *check.Row) error {
	var all living
	if !x.Into(&all) {
		return nil
	}
	all.without(x.Now())
	for _, t := range all.Tokens {
		var row Token
		found, err := x.Read(ctx, subject(t.ID).Key(), &row)
		if err != nil {
			return err
		}
		is := one{row.ID, row.Name, row.Expires}
		active := found && row.State(x.Now()) == Active
		if active && t == is {
			continue
		}

		should := all
		should.Tokens = slices.DeleteFunc(slices.Clone(all.Tokens),
			func(o one) bool { return o == t })
		if active && should.named(is.Name) == nil {
			should.Tokens = append(should.Tokens, is)
		}
		x.Subject = "token:" + t.ID
		x.Add("token-living", check.Repair, func(ctx context.Context) error {
			return x.Commit(ctx, func(tx *table.Tx) error { tx.Save(&should); return nil })
		}, "it is among the active tokens as %s until %s, and is not active as that", t.Name,
			day(t.Expires))
		return nil // each repair writes the row: what else is wrong, the next run finds
	}
	return nil
}

// of is the store of the rows that are checked.
func of(x *check.Row) *Store { return &Store{Table: x.Table, Now: x.Now} }
