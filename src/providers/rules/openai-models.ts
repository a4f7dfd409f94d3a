// Rules of OpenAI's models on Chat Completions, by family. A later row wins over an earlier one, member by member: first
// all reasoning models, then each generation, then additions of OpenAI's own API.

import type { TargetRules } from '../../dialects/canonical/target-rules.ts'
import { bareFamily, family, type RuleRow } from './rule-table.ts'

const dialect = 'openai-chat'
const checked = '2026-11-15'

const capabilities = 'https://github.com/vercel/ai/blob/main/packages/openai/src/openai-language-model-capabilities.ts'
const reference = 'https://platform.openai.com/docs/api-reference/chat/create'
const latestModel = 'https://developers.openai.com/api/docs/guides/latest-model'

const withoutDial: TargetRules = { sampling: 'all', efforts: [], thinksByDefault: false }

const families: readonly RuleRow[] = [
  {
    dialect,
    // Everybody else's templates may answer a system message that is not the first with a 400, or leave it out; and
    // hosts of other models may take any number of tools.
    models: family('gpt-3\\.5-turbo|gpt-4(?:\\.\\d|o)?|chatgpt-4o|o[1-9]|gpt-[5-9](?:\\.\\d+)?'),
    rules: { midSystem: true, toolsMax: 128 },
    source: reference,
    checked,
  },
  {
    dialect,
    models: family('gpt-3\\.5-turbo|gpt-4(?:\\.\\d|o)?|chatgpt-4o'),
    rules: withoutDial,
    source: capabilities,
    checked,
  },
  {
    dialect,
    models: family('gpt-3\\.5-turbo|gpt-4-turbo|gpt-4o-2024-05-13'),
    rules: { jsonOutput: 'object' },
    source: 'https://platform.openai.com/docs/guides/structured-outputs',
    checked,
  },
  {
    dialect,
    // Generations yet to come are expected to be no laxer.
    models: family('o[1-9]|gpt-[5-9](?:\\.\\d+)?'),
    rules: {
      sampling: 'none',
      penalties: false,
      logitBias: false,
      stopMax: 0,
      outputCapName: 'max_completion_tokens',
      thinksByDefault: true,
    },
    source: reference,
    checked,
  },
  {
    dialect,
    models: family('o[1-9]'),
    rules: { efforts: ['low', 'medium', 'high'] },
    source: capabilities,
    checked,
  },
  {
    dialect,
    // Also as `false` it is a 400.
    models: family('o[1-9]'),
    rules: { parallelFlag: false },
    source: 'https://github.com/run-llama/llama_index/issues/20865',
    checked,
  },
  {
    dialect,
    models: family('gpt-3\\.5-turbo|o1-mini|o3-mini'),
    rules: { images: false },
    source: 'https://platform.openai.com/docs/models',
    checked,
  },
  {
    dialect,
    models: family('gpt-5(?!-chat)'),
    rules: { efforts: ['minimal', 'low', 'medium', 'high'] },
    source: reference,
    checked,
  },
  {
    dialect,
    models: family('gpt-5-pro'),
    rules: { efforts: ['high'] },
    source: reference,
    checked,
  },
  {
    dialect,
    models: family('gpt-5\\.[1-5]'),
    rules: {
      sampling: 'without-reasoning',
      efforts: ['none', 'low', 'medium', 'high', 'xhigh'],
      thinksByDefault: false,
    },
    source: `${latestModel}#gpt-5-1-parameter-compatibility`,
    checked,
  },
  {
    dialect,
    models: family('gpt-5\\.1'),
    rules: { efforts: ['none', 'low', 'medium', 'high'] },
    source: 'https://github.com/anomalyco/opencode/issues/4451',
    checked,
  },
  {
    dialect,
    models: family('gpt-5\\.[1-3]-chat'),
    rules: { sampling: 'none', efforts: ['medium'], thinksByDefault: true },
    source: 'https://github.com/anomalyco/models.dev/pull/2351',
    checked,
  },
  {
    dialect,
    models: family('gpt-5\\.[45]'),
    rules: { toolsWithReasoning: false },
    source: 'https://github.com/pipecat-ai/pipecat/issues/4043',
    checked,
  },
  {
    dialect,
    models: family('gpt-5\\.5'),
    rules: { thinksByDefault: true },
    source: 'https://github.com/UKGovernmentBEIS/inspect_ai/blob/main/docs/_reasoning-defaults.md',
    checked,
  },
  {
    dialect,
    models: family('gpt-5\\.6'),
    rules: {
      sampling: 'without-reasoning',
      efforts: ['none', 'low', 'medium', 'high', 'xhigh'],
      toolsWithReasoning: false,
    },
    source: 'https://github.com/livekit/agents/pull/7169',
    checked,
  },
  {
    dialect,
    models: family('gpt-6(?:\\.\\d+)?'),
    rules: { efforts: ['low', 'medium', 'high', 'xhigh', 'max'] },
    source: capabilities,
    checked,
  },
  {
    dialect,
    models: family('gpt-6-sol|gpt-6-luna|gpt-6\\.1-terra'),
    rules: { sampling: 'without-reasoning', efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'] },
    source: capabilities,
    checked,
  },
  {
    dialect,
    // Seen on gpt-6-sol; the two that can be turned off beside it are taken to be the same.
    models: family('gpt-6-sol|gpt-6-luna|gpt-6\\.1-terra'),
    rules: { toolsWithReasoning: false },
    source: 'https://qiita.com/kai_kou/items/92d3e48a0e78bfa1d853',
    checked,
  },
]

const ownApi: readonly RuleRow[] = [
  {
    dialect,
    models: bareFamily('gpt-4o|gpt-4\\.\\d|o[1-9]|gpt-5(?:\\.[1-5])?'),
    rules: { cacheStyle: 'implicit' },
    source: 'https://developers.openai.com/api/docs/guides/prompt-caching',
    checked,
  },
  {
    dialect,
    models: bareFamily('gpt-5\\.(?:[6-9]|\\d\\d)|gpt-[6-9](?:\\.\\d+)?'),
    rules: { cacheStyle: 'breakpoint' },
    source: 'https://developers.openai.com/api/docs/guides/prompt-caching',
    checked,
  },
  {
    dialect,
    models: bareFamily('gpt-4o|gpt-4\\.1|o[134]|gpt-[5-9](?:\\.\\d+)?'),
    rules: { documents: true },
    source: 'https://developers.openai.com/api/docs/guides/file-inputs',
    checked,
  },
  { dialect, models: bareFamily('o1-mini|o3-mini'), rules: { documents: false }, source: reference, checked },
  {
    dialect,
    models: bareFamily('o[1-9]|gpt-[5-9](?:\\.\\d+)?'),
    rules: { systemRole: 'developer' },
    source: reference,
    checked,
  },
  {
    dialect,
    models: bareFamily('gpt-[5-9](?:\\.\\d+)?'),
    rules: { customTools: true, allowedTools: true },
    source: latestModel,
    checked,
  },
]

/** Not a reasoning model, for all its name. */
const chatVariant: RuleRow = {
  dialect,
  models: family('gpt-5-chat'),
  rules: {
    ...withoutDial,
    penalties: true,
    logitBias: true,
    stopMax: 4,
    jsonOutput: 'object',
    systemRole: 'system',
    customTools: false,
    allowedTools: false,
  },
  source: 'https://community.openai.com/t/gpt-5-nano-accepted-parameters/1355086',
  checked,
}

export const openaiModels: readonly RuleRow[] = [...families, ...ownApi, chatVariant]

// Rules of OpenAI's models on Responses: the same rows as on Chat Completions, without the fields of that dialect. A new
// model is added once.

/**
 * On Responses, tools and reasoning work together, every model can be limited to one call at a time, system messages may
 * be anywhere, the limit on tools is the same for all, and stops, penalties and biases do not exist.
 */
const elsewhere = [
  'outputCapName',
  'stopMax',
  'penalties',
  'logitBias',
  'toolsWithReasoning',
  'parallelFlag',
  'midSystem',
  'toolsMax',
] as const satisfies readonly (keyof TargetRules)[]

export const responsesModels: readonly RuleRow[] = openaiModels.flatMap((row): RuleRow[] => {
  const rules: TargetRules = Object.fromEntries(
    Object.entries(row.rules).filter(([name]) => !elsewhere.some((each) => each === name)),
  )
  return Object.keys(rules).length === 0 ? [] : [{ ...row, dialect: 'openai-responses', rules }]
})
