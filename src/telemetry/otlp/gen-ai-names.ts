// The names of OpenTelemetry's conventions for generative models, in one place because they are still in development.
// Version: https://opentelemetry.io/schemas/gen-ai/1.42.0, read 2026-07 in open-telemetry/semantic-conventions-genai.
// Names that hold prompts or answers (gen_ai.input.messages and its like) are left out on purpose.

export const genAiSchemaUrl = 'https://opentelemetry.io/schemas/gen-ai/1.42.0'

export const genAi = {
  operationName: 'gen_ai.operation.name',
  providerName: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  requestStream: 'gen_ai.request.stream',
  responseModel: 'gen_ai.response.model',
  /** In seconds. */
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  tokenType: 'gen_ai.token.type',
  /** All input, cached or not. */
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_creation.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  errorType: 'error.type',
} as const

/** Histograms, with the bounds that the conventions ask for. */
export const genAiMetrics = {
  operationDuration: {
    name: 'gen_ai.client.operation.duration',
    help: 'GenAI operation duration.',
    bounds: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
  },
  tokenUsage: {
    name: 'gen_ai.client.token.usage',
    help: 'Number of input and output tokens used.',
    bounds: [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864],
  },
} as const

/** Names of our own, where the conventions have none. */
export const own = {
  requestId: 'tollgate.request_id',
  workspaceId: 'tollgate.workspace_id',
  projectId: 'tollgate.project_id',
  lane: 'tollgate.lane',
  attempts: 'tollgate.attempts',
  /** `ok`, the provider's status, or the class of the failure. */
  outcome: 'tollgate.attempt.outcome',
  usageSource: 'tollgate.usage.source',
  costUsd: 'tollgate.cost_usd',
  warnings: 'tollgate.warnings',
} as const

export const http = { path: 'url.path', status: 'http.response.status_code' } as const
