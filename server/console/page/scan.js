// Role: reads a page of pairs. If the answer would be too large, it asks for fewer pairs.
import * as api from './api.js';
import { ApiError } from './api.js';

// The answer, and `limit`: how many pairs were asked for at last.
export async function scanPage(request, { limit }) {
  for (let asked = limit; ; asked = Math.max(1, Math.floor(asked / 4))) {
    try {
      return { ...(await api.call('Scan', { ...request, limit: asked })), limit: asked };
    } catch (error) {
      if (!(error instanceof ApiError) || error.kind !== 'too_large') throw error;
      if (asked === 1)
        throw new ApiError(
          'refused',
          `The next pair alone is too large for this page. ${error.message}`,
          error.details,
        );
    }
  }
}
