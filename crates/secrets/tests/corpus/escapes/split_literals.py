a = "⟦gh" + "r_u2TYqSxVKVvdo3bM7BY7msujkMz7O8375Qzo⟧"
b = ("⟦ghr_1L7cC2kL"
     "Sl7XWSGGCZFMPRWmbAF03U3zzQ1E⟧")
