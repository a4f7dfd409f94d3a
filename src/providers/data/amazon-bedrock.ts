import type { Endpoint, ProviderData } from '../provider.ts'

/** Claude by InvokeModel at any address: this host's own, or one of the configuration file. */
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
  rules: { dialectVersion: '2023-06-01', fastTier: false, mediaUrls: false, thinkingBindingControls: false },
}

// https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html, 2026-11
// Claude alone, by InvokeModel; everybody else there speaks Converse, which nothing here speaks.
export const amazonBedrock: ProviderData = {
  id: 'amazon-bedrock',
  variable: 'AWS_ACCESS_KEY_ID',
  needs: ['AWS_SECRET_ACCESS_KEY', 'AWS_REGION'],
  takes: ['AWS_SESSION_TOKEN'],
  credential: ({ AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN }) =>
    [AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN].filter((part) => part !== undefined).join(':'),
  endpoints: [{ ...invokedClaude, baseUrl: 'https://bedrock-runtime.{AWS_REGION}.amazonaws.com' }],
}
