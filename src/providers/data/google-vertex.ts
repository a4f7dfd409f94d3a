import { parseServiceAccount } from '../google-tokens.ts'
import type { ProviderData, ProviderSettings } from '../provider.ts'

const place = 'https://{HOST}/v1/projects/{GOOGLE_CLOUD_PROJECT}/locations/{LOCATION}/publishers'

/** Every region has a host of its own, the two multi-regions have theirs elsewhere, the global one has none in front. */
function derived({ GOOGLE_CLOUD_LOCATION: location = 'global' }: ProviderSettings): ProviderSettings {
  const host = 'aiplatform.googleapis.com'
  if (location === 'global') return { LOCATION: location, HOST: host }
  const isMulti = location === 'us' || location === 'eu'
  return { LOCATION: location, HOST: isMulti ? `aiplatform.${location}.rep.googleapis.com` : `${location}-${host}` }
}

/** A workspace's service account may call the models of its own project only; where they run is the operator's to say. */
function settingsOf(credential: string): ProviderSettings {
  const project = parseServiceAccount(credential)?.projectId
  return project === undefined ? {} : { GOOGLE_CLOUD_PROJECT: project }
}

// https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude, 2026-11
// https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference, 2026-11
// The variable holds the path of a service account's key file, as Google's own libraries expect it.
export const googleVertex: ProviderData = {
  id: 'google-vertex',
  variable: 'GOOGLE_APPLICATION_CREDENTIALS',
  needs: ['GOOGLE_CLOUD_PROJECT'],
  takes: ['GOOGLE_CLOUD_LOCATION'],
  derived,
  settingsOf,
  endpoints: [
    {
      dialect: 'gemini',
      baseUrl: `${place}/google`,
      models: /^(?!claude)/,
      auth: 'google-oauth',
      // Calls are matched to their results by order; ids are refused. Penalties are taken, also by 2.5.
      rules: { toolIdMax: 0, penalties: true },
    },
    {
      dialect: 'anthropic-messages',
      baseUrl: `${place}/anthropic`,
      models: /^claude/,
      auth: 'google-oauth',
      wrapping: 'raw-predict',
      betas: ['context-1m-2025-08-07', 'interleaved-thinking-2025-05-14', 'web-search-2025-03-05'],
      // Media by address are a 400: anthropics/anthropic-sdk-typescript#1038, 2026-05.
      rules: { dialectVersion: '2023-06-01', fastTier: false, mediaUrls: false, thinkingBindingControls: false },
    },
  ],
}
