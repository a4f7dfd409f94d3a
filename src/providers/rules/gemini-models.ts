// Rules of Gemini models on generateContent. The first row has what the newest ones share, so that a model released
// tomorrow gets nothing that they refuse; every later row says where a model differs.

import type { TargetRules } from '../../dialects/canonical/target-rules.ts'
import { family, type RuleRow } from './rule-table.ts'

const checked = '2026-11-15'
const docs = 'https://ai.google.dev/gemini-api/docs'
/** Its data says which words a model takes. */
const levels = 'https://www.npmjs.com/package/@earendil-works/pi-ai/v/1.5.0'
const thinkingTable = `${docs}/thinking`

function row(names: string, rules: TargetRules, source: string): RuleRow {
  return { dialect: 'gemini', models: family(names), rules, source, checked }
}

/** Since 3: a word says how much to think, and nothing turns it off. */
const byLevel: TargetRules = { efforts: ['low', 'medium', 'high'], thinksByDefault: true }

/** 2.5: a budget of tokens. Those models refuse penalties on Google's own API. */
const byBudget: TargetRules = {
  efforts: [],
  thinking: ['enabled', 'disabled'],
  thinksByDefault: true,
  penalties: false,
}

export const geminiModels: readonly RuleRow[] = [
  row('gemini-.+', byLevel, thinkingTable),
  row(
    'gemini-3(?:\\.[156])?-flash(?:-lite)?|gemini-flash(?:-lite)?-latest',
    { efforts: ['minimal', 'low', 'medium', 'high'] },
    levels,
  ),
  row('gemini-3-pro', { efforts: ['low', 'high'] }, thinkingTable),
  row('gemini-2\\.5', byBudget, thinkingTable),
  row('gemini-2\\.5-pro', { thinking: ['enabled'] }, thinkingTable),
  row('gemini-2\\.5-flash-lite', { thinksByDefault: false }, thinkingTable),
  row('gemini-2\\.0', { efforts: [], thinking: [], thinksByDefault: false }, `${docs}/models`),
]
