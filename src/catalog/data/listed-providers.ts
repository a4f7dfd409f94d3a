// How the price list genai-prices names providers, where that is not their id here.

export const listedProviders: Readonly<Record<string, string>> = { moonshotai: 'moonshot', 'x-ai': 'xai' }
