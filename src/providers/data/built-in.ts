// The built-in providers: who hosts models, where, and what each host refuses. A compatible provider is one more row, with
// the page its facts come from and the month in which they were checked.

import { openaiOwnTiers } from '../../dialects/canonical/tiers.ts'
import { parseServiceAccount } from '../google-tokens.ts'
import type { Endpoint, ProviderData, ProviderSettings } from '../provider.ts'
import { family } from '../rules/rule-table.ts'

/**
 * All but those that only Responses serves: https://platform.openai.com/docs/models, 2026-11. What follows a colon is the
 * name that the owner of a fine-tune gave it.
 */
const chatModels = /^(?!(ft:)?[^:]*(-pro\b|codex|deep-research))/

/** Claude by InvokeModel, at Amazon's address or one in the configuration file. */
export const invokedClaude: Omit<Endpoint, 'baseUrl'> = {
  dialect: 'anthropic-messages',
  auth: 'sigv4',
  wrapping: 'invoke-model',
  // A flag that it does not know is a 400 (router-for-me/CLIProxyAPI#4750). AWS's list and LiteLLM's, 2026-11.
  betas: [
    'computer-use-2025-01-24',
    'context-1m-2025-08-07',
    'context-management-2025-06-27',
    'dev-full-thinking-2025-05-14',
    'effort-2025-11-24',
    'fine-grained-tool-streaming-2025-05-14',
    'interleaved-thinking-2025-05-14',
    'output-128k-2025-02-19',
    'token-efficient-tools-2025-02-19',
    'tool-examples-2025-10-29',
    'tool-search-tool-2025-10-19',
  ],
  // Anthropic's flag for deferred tools, which Claude Code sends, under AWS's name (BerriAI/litellm#19373, 2026-01).
  betaNames: { 'advanced-tool-use-2025-11-20': 'tool-search-tool-2025-10-19' },
  // Media by address are a 400: pollinations/pollinations#5862, 2025-12.
  rules: { serviceTiers: {}, mediaUrls: false, thinkingBindingControls: false },
}

/** Embeddings have no cap. */
const embeddingRules = { outputCapName: 'max_tokens' } as const

const vertexUrl = 'https://{HOST}/v1/projects/{GOOGLE_CLOUD_PROJECT}/locations/{LOCATION}/publishers'

/** Every region has its own host; the two multi-regions are at another domain, and the global host has no prefix. */
function vertexLocation({ GOOGLE_CLOUD_LOCATION: location = 'global' }: ProviderSettings): ProviderSettings {
  const host = 'aiplatform.googleapis.com'
  if (location === 'global') return { LOCATION: location, HOST: host }
  const isMulti = location === 'us' || location === 'eu'
  return { LOCATION: location, HOST: isMulti ? `aiplatform.${location}.rep.googleapis.com` : `${location}-${host}` }
}

/** A workspace's service account can only call models of its project; the operator decides where they run. */
function vertexProject(credential: string): ProviderSettings {
  const project = parseServiceAccount(credential)?.projectId
  return project === undefined ? {} : { GOOGLE_CLOUD_PROJECT: project }
}

/** Anthropic and OpenAI, then by name. */
export const builtInProviders: readonly ProviderData[] = [
  // https://docs.claude.com/en/api/overview, 2026-11
  {
    id: 'anthropic',
    variable: 'ANTHROPIC_API_KEY',
    endpoints: [
      {
        dialect: 'anthropic-messages',
        baseUrl: 'https://api.anthropic.com',
        auth: 'x-api-key',
      },
    ],
  },
  // https://platform.openai.com/docs/api-reference, 2026-11
  {
    id: 'openai',
    variable: 'OPENAI_API_KEY',
    endpoints: [
      {
        dialect: 'openai-chat',
        baseUrl: 'https://api.openai.com/v1',
        auth: 'bearer',
        models: chatModels,
        rules: {
          // max_tokens is deprecated there and refused by every reasoning model.
          outputCapName: 'max_completion_tokens',
          systemAsParts: true,
          // Without it, gpt-5.6 and later often miss: https://developers.openai.com/api/docs/guides/prompt-caching, 2026-08.
          promptCacheKey: true,
          endUserIdName: 'safety_identifier',
          // It gives none away here and wants none back; members that it does not know are a 400.
          reasoningMembers: false,
          serviceTiers: openaiOwnTiers,
        },
      },
      // For models that the other one does not have, and those that refuse tools there while they reason.
      {
        dialect: 'openai-responses',
        baseUrl: 'https://api.openai.com/v1',
        auth: 'bearer',
        rules: { endUserIdName: 'safety_identifier', serviceTiers: openaiOwnTiers },
      },
    ],
  },
  // https://www.alibabacloud.com/help/en/model-studio/compatibility-of-openai-with-dashscope, 2026-10. Keys belong to a
  // region, and this is Singapore's. New workspaces have their own addresses; a provider of the configuration file
  // with this id and such an address replaces this one. `max_tokens` covers the answer alone on models before
  // qwen4-max-preview (https://www.alibabacloud.com/help/en/model-studio/api-compatibility-upgrade-notice, 2026-11).
  {
    id: 'alibaba',
    variable: 'DASHSCOPE_API_KEY',
    endpoints: [
      {
        dialect: 'openai-chat',
        baseUrl: 'https://dashscope-intl.aliyuncs.com/compatible-mode/v1',
        auth: 'bearer',
        rules: { outputCapName: 'max_tokens', capExcludesReasoning: true, systemRole: 'system' },
      },
    ],
  },
  // https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html, 2026-11
  // Claude and embeddings only, by InvokeModel; the other models there need Converse, which is not implemented.
  {
    id: 'amazon-bedrock',
    variable: 'AWS_ACCESS_KEY_ID',
    keyNeeds: ['AWS_SECRET_ACCESS_KEY'],
    needs: ['AWS_REGION'],
    takes: ['AWS_SESSION_TOKEN'],
    identity: 'aws',
    credential: ({ AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN }) =>
      [AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN].filter((part) => part !== undefined).join(':'),
    endpoints: [
      {
        ...invokedClaude,
        baseUrl: 'https://bedrock-runtime.{AWS_REGION}.amazonaws.com',
        models: /^(?!.*\bembed)/,
      },
      {
        dialect: 'openai-chat',
        baseUrl: 'https://bedrock-runtime.{AWS_REGION}.amazonaws.com',
        auth: 'sigv4',
        wrapping: 'invoke-embedding',
        rules: embeddingRules,
        models: /\bembed/,
      },
    ],
  },
  // https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle, 2026-11: one address without a version in
  // the query, for both dialects. Models are deployments under names that their owner chose, so that the catalog has no
  // routes here; an entry in the configuration file has.
  {
    id: 'azure',
    variable: 'AZURE_OPENAI_API_KEY',
    // https://NAME.openai.azure.com
    needs: ['AZURE_OPENAI_ENDPOINT'],
    identity: 'azure',
    endpoints: [
      {
        dialect: 'openai-chat',
        baseUrl: '{AZURE_OPENAI_ENDPOINT}/openai/v1',
        auth: 'api-key',
        // Deployments are mostly called as their models are.
        models: chatModels,
        // As for the same models elsewhere; who the end user is goes by the older name.
        rules: {
          outputCapName: 'max_completion_tokens',
          systemAsParts: true,
          promptCacheKey: true,
          reasoningMembers: false,
          toolsMax: 128,
          serviceTiers: openaiOwnTiers,
        },
      },
      {
        dialect: 'openai-responses',
        baseUrl: '{AZURE_OPENAI_ENDPOINT}/openai/v1',
        auth: 'api-key',
        rules: { endUserIdName: 'user', serviceTiers: openaiOwnTiers },
      },
    ],
  },
  // https://inference-docs.cerebras.ai/resources/openai, 2026-11
  {
    id: 'cerebras',
    variable: 'CEREBRAS_API_KEY',
    endpoints: [
      {
        dialect: 'openai-chat',
        baseUrl: 'https://api.cerebras.ai/v1',
        auth: 'bearer',
        // Each of the three is a 400 there: https://hexdocs.pm/req_llm/cerebras.html, 2026-11.
        // So is reasoning in the history: Kilo-Org/kilocode#10375, 2026-09.
        rules: {
          outputCapName: 'max_completion_tokens',
          penalties: false,
          logitBias: false,
          parallelFlag: false,
          reasoningMembers: false,
          // zed-industries/zed#36215, 2025-08
          promptCacheKey: false,
        },
      },
    ],
  },
  // https://docs.cohere.com/docs/compatibility-api, 2026-11
  {
    id: 'cohere',
    variable: 'COHERE_API_KEY',
    endpoints: [
      {
        dialect: 'openai-chat',
        baseUrl: 'https://api.cohere.ai/compatibility/v1',
        auth: 'bearer',
        // Its page named logit_bias and parallel_tool_calls as not supported (2025-12), and effort for reasoning models
        // alone (2026-06).
        rules: { outputCapName: 'max_tokens', logitBias: false, parallelFlag: false, efforts: [] },
      },
    ],
  },
  // https://api-docs.deepseek.com/ and https://api-docs.deepseek.com/guides/anthropic_api, 2026-11
  {
    id: 'deepseek',
    variable: 'DEEPSEEK_API_KEY',
    endpoints: [
      {
        dialect: 'openai-chat',
        baseUrl: 'https://api.deepseek.com',
        auth: 'bearer',
        // The number of tools: https://api-docs.deepseek.com/api/create-chat-completion, 2025-12.
        rules: { outputCapName: 'max_tokens', systemRole: 'system', toolsMax: 128 },
      },
      {
        dialect: 'anthropic-messages',
        baseUrl: 'https://api.deepseek.com/anthropic',
        auth: 'x-api-key',
        // Blocks of documents were named there as not supported (2025-12).
        rules: { documents: false, attributionLine: false },
      },
    ],
  },
  // https://docs.fireworks.ai/tools-sdks/openai-compatibility, 2026-11
  // https://docs.fireworks.ai/tools-sdks/anthropic-compatibility, 2026-11
  {
    id: 'fireworks',
    variable: 'FIREWORKS_API_KEY',
    endpoints: [
      {
        dialect: 'openai-chat',
        baseUrl: 'https://api.fireworks.ai/inference/v1',
        auth: 'bearer',
        // A larger cap without a stream is a 400: nullclaw/nullclaw#231, 2026-03.
        // The cache key: https://reference.langchain.com/python/langchain-fireworks/middleware, 2026-11.
        rules: {
          outputCapName: 'max_tokens',
          systemRole: 'system',
          topK: true,
          unstreamedOutputMax: 4096,
          promptCacheKey: true,
        },
      },
      {
        dialect: 'anthropic-messages',
        baseUrl: 'https://api.fireworks.ai/inference',
        auth: 'bearer',
        rules: { attributionLine: false },
      },
    ],
  },
  // https://ai.google.dev/api/generate-content, 2026-11
  {
    id: 'google',
    variable: 'GEMINI_API_KEY',
    endpoints: [
      {
        dialect: 'gemini',
        baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
        auth: 'x-goog-api-key',
      },
    ],
  },
  // https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude, 2026-11
  // https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference, 2026-11
  // The variable holds the path of a service account's key file, as Google's own libraries expect it.
  {
    id: 'google-vertex',
    variable: 'GOOGLE_APPLICATION_CREDENTIALS',
    needs: ['GOOGLE_CLOUD_PROJECT'],
    takes: ['GOOGLE_CLOUD_LOCATION'],
    identity: 'google',
    derived: vertexLocation,
    settingsOf: vertexProject,
    endpoints: [
      {
        dialect: 'gemini',
        baseUrl: `${vertexUrl}/google`,
        models: /^(?!claude|.*embedding)/,
        auth: 'google-oauth',
        wrapping: 'tier-header',
        // Calls are matched to their results by order; ids are refused. Penalties are taken, also by 2.5. Only the global
        // location has the tiers; elsewhere the reply says that it was served as usual.
        rules: {
          toolIdMax: 0,
          penalties: true,
          serviceTiers: { flex: 'flex', priority: 'priority', scale: 'dedicated' },
        },
      },
      {
        dialect: 'anthropic-messages',
        baseUrl: `${vertexUrl}/anthropic`,
        models: /^claude/,
        auth: 'google-oauth',
        wrapping: 'raw-predict',
        betas: ['context-1m-2025-08-07', 'interleaved-thinking-2025-05-14', 'web-search-2025-03-05'],
        // Media by address are a 400: anthropics/anthropic-sdk-typescript#1038, 2026-05.
        rules: { serviceTiers: {}, mediaUrls: false, thinkingBindingControls: false },
      },
      {
        dialect: 'openai-chat',
        baseUrl: `${vertexUrl}/google`,
        models: /embedding/,
        auth: 'google-oauth',
        wrapping: 'predict-embedding',
        rules: embeddingRules,
      },
    ],
  },
  // https://console.groq.com/docs/openai, 2026-11
  {
    id: 'groq',
    variable: 'GROQ_API_KEY',
    endpoints: [
      {
        dialect: 'openai-chat',
        baseUrl: 'https://api.groq.com/openai/v1',
        auth: 'bearer',
        // The older name of the cap is deprecated there; logit_bias is a 400, and so is a member of a message that it does
        // not know (tashfeenahmed/freellmapi#1070).
        rules: {
          outputCapName: 'max_completion_tokens',
          logitBias: false,
          reasoningMembers: false,
          efforts: [],
          // https://console.groq.com/docs/service-tiers, 2026-11
          serviceTiers: {
            auto: 'auto',
            standard: 'on_demand',
            unasked: 'on_demand',
            flex: 'flex',
            priority: 'performance',
          },
          // eigent-ai/eigent#1827, 2026-07
          promptCacheKey: false,
          // gsd-build/gsd-2#4376, 2026-04
          toolsMax: 128,
        },
        // An effort is a 400 for every other model; Qwen is only turned off, since `default` is no effort
        // (https://console.groq.com/docs/reasoning, 2026-09, by way of ENTERPILOT/GoModel#946).
        modelRules: [
          { models: family('gpt-oss(?:-safeguard)?'), rules: { efforts: ['low', 'medium', 'high'] } },
          { models: family('qwen-?3(?:\\.\\d+)?'), rules: { efforts: ['none'], thinksByDefault: true } },
        ],
      },
    ],
  },
  // https://huggingface.co/docs/inference-providers/en/tasks/chat-completion, 2026-06. A router: the host
  // behind it decides what else is accepted.
  {
    id: 'huggingface',
    variable: 'HF_TOKEN',
    endpoints: [
      {
        dialect: 'openai-chat',
        baseUrl: 'https://router.huggingface.co/v1',
        auth: 'bearer',
        rules: { outputCapName: 'max_tokens', systemRole: 'system' },
      },
    ],
  },
  // https://platform.minimax.io/docs/api-reference/text-anthropic-api, 2026-11
  // https://www.developersdigest.tech/reference/api-compatibility/minimax, 2026-11
  {
    id: 'minimax',
    variable: 'MINIMAX_API_KEY',
    endpoints: [
      // First, because reasoning and text come apart only here.
      {
        dialect: 'anthropic-messages',
        baseUrl: 'https://api.minimax.io/anthropic',
        auth: 'bearer',
        // stop_sequences and top_k were ignored there (2025-12), so that stops are matched here; documents are not taken.
        rules: { stopMax: 0, topK: false, documents: false, attributionLine: false },
      },
      {
        dialect: 'openai-chat',
        baseUrl: 'https://api.minimax.io/v1',
        auth: 'bearer',
        // Penalties and logit_bias were ignored (2025-12); models up to M3 think aloud in <think> tags.
        rules: { outputCapName: 'max_tokens', penalties: false, logitBias: false, thinkTags: true },
      },
    ],
  },
  // https://docs.mistral.ai/api/endpoint/chat, 2025-12
  {
    id: 'mistral',
    variable: 'MISTRAL_API_KEY',
    endpoints: [
      {
        dialect: 'openai-chat',
        baseUrl: 'https://api.mistral.ai/v1',
        auth: 'bearer',
        // A member it does not know is a 422: the cap's newer name (editor-code-assistant/eca#231), seed (it says
        // random_seed), logit_bias, stream_options (openai/openai-agents-python#442; usage comes without being asked for),
        // user, reasoning_content in a message (charmbracelet/crush#1590). Ids of tool calls and the turn after a result
        // are rules of its models.
        rules: {
          outputCapName: 'max_tokens',
          systemRole: 'system',
          seed: false,
          logitBias: false,
          streamUsage: false,
          endUserId: false,
          reasoningMembers: false,
          // It caches nothing without one: anomalyco/opencode#50748, 2026-09.
          promptCacheKey: true,
        },
      },
    ],
  },
  // https://www.developersdigest.tech/reference/api-compatibility/moonshot, 2026-11
  {
    id: 'moonshot',
    variable: 'MOONSHOT_API_KEY',
    endpoints: [
      {
        dialect: 'openai-chat',
        baseUrl: 'https://api.moonshot.ai/v1',
        auth: 'bearer',
        rules: {
          outputCapName: 'max_tokens',
          systemRole: 'system',
          strictTools: false,
          // A 400: https://github.com/gHashTag/BrowserOS/pull/1, 2026-05.
          parallelFlag: false,
          // `required` is not known, and temperatures end at 1: https://docs.litellm.ai/docs/providers/moonshot, 2026-10.
          forcedToolChoice: false,
          temperatureMax: 1,
        },
      },
      {
        dialect: 'anthropic-messages',
        baseUrl: 'https://api.moonshot.ai/anthropic',
        auth: 'bearer',
        rules: { attributionLine: false },
      },
    ],
  },
  // https://docs.api.nvidia.com/nim/reference/llm-apis, 2026-06. Each model has a different schema there, and no effort
  // is common to them.
  {
    id: 'nvidia',
    variable: 'NVIDIA_API_KEY',
    endpoints: [
      {
        dialect: 'openai-chat',
        baseUrl: 'https://integrate.api.nvidia.com/v1',
        auth: 'bearer',
        // The cache key is a 400: liliMozi/openhanako#2512, 2026-08.
        rules: {
          outputCapName: 'max_tokens',
          systemRole: 'system',
          strictTools: false,
          efforts: [],
          promptCacheKey: false,
        },
      },
    ],
  },
  // https://www.developersdigest.tech/reference/api-compatibility/openrouter, 2026-11
  // https://openrouter.ai/docs/api/api-reference/anthropic-messages/create-messages, 2026-06
  {
    id: 'openrouter',
    variable: 'OPENROUTER_API_KEY',
    endpoints: [
      {
        dialect: 'openai-chat',
        baseUrl: 'https://openrouter.ai/api/v1',
        auth: 'bearer',
        // `user` is refused above 128 characters (maximhq/bifrost#1000). The cache key keeps a session on one of its hosts
        // (SillyTavern/SillyTavern#5889, 2026-07). It has tiers of OpenAI's and Google's models, and the faster Claude only
        // as a model of its own (https://openrouter.ai/docs/guides/features/service-tiers, 2026-11).
        rules: { outputCapName: 'max_tokens', endUserIdMax: 128, topK: true, promptCacheKey: true },
        modelRules: [{ models: /^anthropic\//, rules: { serviceTiers: {} } }],
      },
      {
        dialect: 'anthropic-messages',
        baseUrl: 'https://openrouter.ai/api',
        auth: 'bearer',
        rules: { serviceTiers: {} },
      },
    ],
  },
  // https://docs.perplexity.ai/api-reference/chat-completions-post, 2025-12. The catalog has none of its models: each
  // call costs a fee besides its tokens, which a price per token cannot say. An entry in the configuration file can.
  {
    id: 'perplexity',
    variable: 'PERPLEXITY_API_KEY',
    endpoints: [
      {
        dialect: 'openai-chat',
        baseUrl: 'https://api.perplexity.ai',
        auth: 'bearer',
        rules: { outputCapName: 'max_tokens', systemRole: 'system' },
      },
    ],
  },
  // https://www.developersdigest.tech/reference/api-compatibility/together, 2026-11
  {
    id: 'together',
    variable: 'TOGETHER_API_KEY',
    endpoints: [
      {
        dialect: 'openai-chat',
        baseUrl: 'https://api.together.ai/v1',
        auth: 'bearer',
        rules: { outputCapName: 'max_tokens', systemRole: 'system', strictTools: false, topK: true },
      },
    ],
  },
  // https://www.npmjs.com/package/@ai-sdk/xai/v/3.0.138, 2026-11. What reasoning models refuse is a rule of theirs; the
  // Anthropic endpoint there is deprecated. Reasoning is reported beside completion_tokens and counts against the cap: a
  // reply cut by its length had 1,187 and 860 tokens (evalstate/fast-agent#276, 2025-07).
  {
    id: 'xai',
    variable: 'XAI_API_KEY',
    endpoints: [
      {
        dialect: 'openai-chat',
        baseUrl: 'https://api.x.ai/v1',
        auth: 'bearer',
        // The number of tools: anomalyco/opencode#28911, 2026-05.
        rules: { outputCapName: 'max_completion_tokens', systemRole: 'system', toolsMax: 200 },
      },
    ],
  },
  // https://docs.z.ai/api-reference/llm/chat-completion, 2025-12; the address again 2026-06. The Anthropic endpoint there
  // belongs to another plan.
  {
    id: 'zai',
    variable: 'ZAI_API_KEY',
    endpoints: [
      {
        dialect: 'openai-chat',
        baseUrl: 'https://api.z.ai/api/paas/v4',
        auth: 'bearer',
        rules: {
          outputCapName: 'max_tokens',
          systemRole: 'system',
          // Supports only `auto` as tool choice, one stop word, and JSON without a schema.
          forcedToolChoice: false,
          stopMax: 1,
          jsonOutput: 'object',
          temperatureMax: 1,
          penalties: false,
          logitBias: false,
          seed: false,
        },
      },
    ],
  },
]
