// Rules of Claude models on Messages, generation by generation. The first row has what the newest ones share, so that a
// model released tomorrow gets nothing that they refuse; every later row says where a model differs.

import type { Effort } from '../../dialects/canonical/conversation.ts'
import type { TargetRules } from '../../dialects/canonical/target-rules.ts'
import { family, type RuleRow } from './rule-table.ts'

const checked = '2026-11-15'
const docs = 'https://platform.claude.com/docs/en'
/** Its first section is a table of models and what they reject. */
const thinkingTable = `${docs}/build-with-claude/thinking-troubleshooting`

function row(names: string, rules: TargetRules, source: string): RuleRow {
  return { dialect: 'anthropic-messages', models: family(names), rules, source, checked }
}

const effortsWithoutXhigh: readonly Effort[] = ['low', 'medium', 'high', 'max']

const newest: TargetRules = {
  sampling: 'none',
  prefill: false,
  midSystem: false,
  thinking: ['adaptive'],
  thinksByDefault: true,
  efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
  jsonOutput: 'schema',
  strictTools: true,
  images: true,
  documents: true,
  cachesOnlyMarked: true,
}

/** Up to 4.6: sampling is taken, though not while the model thinks. */
const sampled: TargetRules = {
  sampling: 'without-reasoning',
  temperatureOrTopP: true,
  thinksByDefault: false,
}

/** Up to 4.5: a budget instead of adaptive thinking, and an answer may be begun by the caller. */
const budgeted: TargetRules = { ...sampled, prefill: true, thinking: ['enabled', 'disabled'], efforts: [] }

/** Up to 4.1: no output by schema. */
const schemaless: TargetRules = { ...budgeted, jsonOutput: 'emulated', strictTools: false }

export const claudeModels: readonly RuleRow[] = [
  row('claude-.+', newest, thinkingTable),

  // Generation 5.5
  row(
    'claude-sonnet-5[.-]5',
    { thinking: ['adaptive', 'between-tools'], effortHighAtMostWith: ['between-tools'] },
    `${docs}/models/sonnet-5-5/whats-new-sonnet-5-5`,
  ),
  row(
    'claude-haiku-5[.-]5',
    { thinking: ['adaptive', 'disabled'], effortHighAtMostWith: ['disabled'] },
    `${docs}/models/haiku-5-5/whats-new-haiku-5-5`,
  ),

  // Generation 5
  row('claude-opus-5', { thinking: ['adaptive', 'disabled'], effortHighAtMostWith: ['disabled'] }, thinkingTable),
  row('claude-sonnet-5', { thinking: ['adaptive', 'disabled'] }, thinkingTable),

  // Generation 4
  row('claude-opus-4[.-][78]', { thinking: ['adaptive', 'disabled'], thinksByDefault: false }, thinkingTable),
  row('claude-mythos-preview', { thinking: ['adaptive', 'enabled'], efforts: effortsWithoutXhigh }, thinkingTable),
  row(
    'claude-(?:opus|sonnet)-4[.-]6',
    { ...sampled, thinking: ['adaptive', 'enabled', 'disabled'], efforts: effortsWithoutXhigh },
    thinkingTable,
  ),
  row('claude-(?:opus|sonnet|haiku)-4[.-]5', budgeted, thinkingTable),
  row('claude-opus-4[.-]5', { efforts: ['low', 'medium', 'high'] }, `${docs}/build-with-claude/effort`),
  row('claude-opus-4[.-]1', schemaless, `${docs}/build-with-claude/structured-outputs`),
  row(
    'claude-(?:opus|sonnet)-4(?:[.-]0)?|claude-3[.-]7-sonnet',
    { ...schemaless, temperatureOrTopP: false },
    `${docs}/build-with-claude/structured-outputs`,
  ),
  row(
    'claude-3[.-]5-(?:sonnet|haiku)|claude-3-(?:opus|sonnet|haiku)',
    { ...schemaless, temperatureOrTopP: false, thinking: [] },
    `${docs}/build-with-claude/structured-outputs`,
  ),

  // Across generations
  row(
    'claude-opus-4[.-]8|claude-opus-5(?:[.-]5)?|claude-(?:sonnet|haiku)-5[.-]5|claude-(?:fable|mythos)-5(?:[.-][12])?',
    { midSystem: true },
    `${docs}/build-with-claude/mid-conversation-system-messages`,
  ),
  row(
    'claude-(?:opus|sonnet)-5[.-]5|claude-(?:fable|mythos)-5[.-][12]',
    { forcedToolChoice: false },
    `${docs}/models/fable-5-1/whats-new-fable-5-1#forced-tool-use-is-not-supported`,
  ),
  row(
    'claude-(?:opus|sonnet|haiku)-5[.-]5|claude-(?:fable|mythos)-5[.-][12]',
    { thinkingBindingControls: true },
    `${docs}/build-with-claude/preserved-thinking`,
  ),
]
